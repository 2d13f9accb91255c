import { buildOnnx, type Constant, type Node, type OnnxSpec } from './onnx-builder.js'
import { namesMetadata } from './onnx-models.js'

/** A quantised layer in a few nodes, whose sums are far beyond 16 bits when all of its inputs are as large as can be. */
export type QuantisedLayer = Readonly<{
  name: string
  onnx: Uint8Array
  /** Type and shape of input `x`. */
  input: Readonly<{ type: 'float32' | 'uint8' | 'int8'; shape: readonly number[] }>
  /** Largest amount in the output for inputs of 1, or of 250 (uint8) or 125 (int8), without saturation. */
  expected: number
  /** Whether ONNX Runtime computes it in 16 bits on a processor with AVX2 and without VNNI, weights permitting. */
  concerned: boolean
}>

type Byte = 'uint8' | 'int8'
type Model = Omit<QuantisedLayer, 'name' | 'concerned'>
type LayerOptions = Readonly<{ activations?: Byte; weights?: Byte; weight?: number }>

const channels = 16
const sizePx = 8

function filled(type: Byte, length: number, value: number): Uint8Array | Int8Array {
  return (type === 'uint8' ? new Uint8Array(length) : new Int8Array(length)).fill(value)
}

function scalar(name: string, data: Constant['data']): Constant {
  return { name, shape: [], data }
}

const product = (numbers: readonly number[]) => numbers.reduce((a, b) => a * b)

/** What a weight stands for. */
const valueOf = (weights: Byte, weight: number) => (weights === 'uint8' ? weight - 128 : weight) / 100

/** A value as a byte of scale 1 holds it. */
const held = (activations: Byte, value: number) =>
  Math.min(activations === 'uint8' ? 255 : 127, Math.round(value))

/** Zero points and scales: activations up to 1, weights in hundredths. */
function common(activations: Byte, weights: Byte): Constant[] {
  return [
    scalar('sa', Float32Array.of(1 / (activations === 'uint8' ? 250 : 125))),
    scalar('za', filled(activations, 1, 0)),
    scalar('sw', Float32Array.of(0.01)),
    scalar('zw', filled(weights, 1, weights === 'uint8' ? 128 : 0)),
    scalar('so', Float32Array.of(1)),
  ]
}

const node = (
  op: string,
  inputs: readonly string[],
  output: string,
  attributes?: Node['attributes'],
): Node => ({
  op,
  inputs,
  outputs: [output],
  ...(attributes === undefined ? {} : { attributes }),
})

const activationPair = [
  node('QuantizeLinear', ['x', 'sa', 'za'], 'qx'),
  node('DequantizeLinear', ['qx', 'sa', 'za'], 'dx'),
]
const outputPair = [
  node('QuantizeLinear', ['y', 'so', 'za'], 'qy'),
  node('DequantizeLinear', ['qy', 'so', 'za'], 'z'),
]

type ConvForm = LayerOptions &
  Readonly<{
    group?: number
    /** Nodes between the convolution, which gives `c`, and `y`. */
    behind?: readonly Node[]
    floatOutput?: boolean
    /** How the weights get to be `dw`. */
    dequantise?: readonly Node[]
    constants?: (weight: Constant) => readonly Constant[]
    kernel?: number
  }>

/** A convolution between QuantizeLinear and DequantizeLinear, as quantisers write it. */
export function qdqConv(form: ConvForm = {}): Model {
  const { activations = 'uint8', weights = 'int8', weight = 120, group = 1, kernel = 3 } = form
  const shape = [channels, channels / group, kernel, kernel]
  const data = filled(weights, product(shape), weight)
  const constant: Constant = { name: 'w', shape, data }
  const sum = product(shape.slice(1)) * valueOf(weights, weight)
  const pads = Array.from({ length: 4 }, () => (kernel - 1) / 2)
  return {
    input: { type: 'float32', shape: [1, channels, sizePx, sizePx] },
    expected: form.floatOutput ? sum : held(activations, sum),
    onnx: buildOnnx({
      inputs: [{ name: 'x', type: 'float32', shape: [1, channels, sizePx, sizePx] }],
      outputs: [
        { name: form.floatOutput ? 'y' : 'z', type: 'float32', shape: [1, channels, sizePx, sizePx] },
      ],
      nodes: [
        ...activationPair,
        ...(form.dequantise ?? [node('DequantizeLinear', ['w', 'sw', 'zw'], 'dw')]),
        node('Conv', ['dx', 'dw'], form.behind === undefined ? 'y' : 'c', { pads, group }),
        ...(form.behind ?? []),
        ...(form.floatOutput ? [] : outputPair),
      ],
      constants: [...common(activations, weights), ...(form.constants?.(constant) ?? [constant])],
    }),
  }
}

const rows = 8
const inner = 64
const columns = 32

function qdqProduct(
  op: 'MatMul' | 'Gemm',
  {
    activations = 'uint8',
    weights = 'int8',
    weight = 120,
    floatOutput = false,
  }: LayerOptions & { floatOutput?: boolean },
): Model {
  const sum = inner * valueOf(weights, weight)
  return {
    input: { type: 'float32', shape: [rows, inner] },
    expected: floatOutput ? sum : held(activations, sum),
    onnx: buildOnnx({
      inputs: [{ name: 'x', type: 'float32', shape: [rows, inner] }],
      outputs: [{ name: floatOutput ? 'y' : 'z', type: 'float32', shape: [rows, columns] }],
      nodes: [
        ...activationPair,
        node('DequantizeLinear', ['w', 'sw', 'zw'], 'dw'),
        node(op, ['dx', 'dw'], 'y'),
        ...(floatOutput ? [] : outputPair),
      ],
      constants: [
        ...common(activations, weights),
        { name: 'w', shape: [inner, columns], data: filled(weights, inner * columns, weight) },
      ],
    }),
  }
}

/** One of the operators that take integers. */
function integerLayer(
  op: 'QLinearConv' | 'QLinearMatMul' | 'MatMulInteger' | 'ConvInteger' | 'MatMulIntegerToFloat',
  { activations = 'uint8', weights = 'int8', weight = 120 }: LayerOptions = {},
): Model {
  const conv = op.includes('Conv')
  const shape = conv ? [1, channels, sizePx, sizePx] : [rows, inner]
  const weightShape = conv ? [channels, channels, 3, 3] : [inner, columns]
  const linear = op.startsWith('QLinear')
  const outputs = conv ? [1, channels, sizePx - 2, sizePx - 2] : [rows, columns]
  const inputs = linear
    ? ['x', 'sa', 'za', 'w', 'sw', 'zw', 'so', 'za']
    : op === 'MatMulIntegerToFloat'
      ? ['x', 'w', 'sa', 'sw', 'za', 'zw']
      : ['x', 'w', 'za', 'zw']
  const outputType = linear ? activations : op === 'MatMulIntegerToFloat' ? 'float32' : 'int32'
  const length = product(conv ? weightShape.slice(1) : [inner])
  const sum = length * valueOf(weights, weight)
  const integers = length * weight * (activations === 'uint8' ? 250 : 125)
  return {
    input: { type: activations, shape },
    expected: linear ? held(activations, sum) : outputType === 'float32' ? sum : integers,
    onnx: buildOnnx({
      inputs: [{ name: 'x', type: activations, shape }],
      outputs: [{ name: 'y', type: outputType, shape: outputs }],
      nodes: [
        {
          ...node(op, inputs, 'y'),
          ...(op === 'MatMulIntegerToFloat' ? { domain: 'com.microsoft' as const } : {}),
        },
      ],
      constants: [
        ...common(activations, weights),
        {
          name: 'w',
          shape: weightShape,
          data: filled(weights, product(weightShape), weight),
        },
      ],
    }),
  }
}

function dynamicProduct({ weights = 'int8', weight = 120 }: LayerOptions = {}): Model {
  const nodes: OnnxSpec['nodes'] = [
    { op: 'DynamicQuantizeLinear', inputs: ['x'], outputs: ['qx', 'sx', 'zx'] },
    node('MatMulInteger', ['qx', 'w', 'zx', 'zw'], 'i'),
    node('Cast', ['i'], 'f', { to: 1 }),
    node('Mul', ['sx', 'sw'], 's'),
    node('Mul', ['f', 's'], 'y'),
  ]
  return {
    input: { type: 'float32', shape: [rows, inner] },
    expected: inner * valueOf(weights, weight),
    onnx: buildOnnx({
      inputs: [{ name: 'x', type: 'float32', shape: [rows, inner] }],
      outputs: [{ name: 'y', type: 'float32', shape: [rows, columns] }],
      nodes,
      constants: [
        ...common('uint8', weights),
        { name: 'w', shape: [inner, columns], data: filled(weights, inner * columns, weight) },
      ],
    }),
  }
}

/** The forms in which quantised layers come, with weights of 8 bits. */
export const quantisedLayers: readonly QuantisedLayer[] = [
  { name: 'Conv', concerned: true, ...qdqConv() },
  { name: 'Conv 1x1', concerned: true, ...qdqConv({ kernel: 1 }) },
  { name: 'Conv in groups', concerned: true, ...qdqConv({ group: 4 }) },
  { name: 'Conv behind Relu', concerned: true, ...qdqConv({ behind: [node('Relu', ['c'], 'y')] }) },
  { name: 'Conv of int8 activations', concerned: true, ...qdqConv({ activations: 'int8' }) },
  {
    name: 'Conv of float weights that the model quantises',
    concerned: true,
    ...qdqConv({
      dequantise: [
        node('QuantizeLinear', ['f', 'sw', 'zw'], 'w'),
        node('DequantizeLinear', ['w', 'sw', 'zw'], 'dw'),
      ],
      constants: ({ shape }) => [{ name: 'f', shape, data: new Float32Array(product(shape)).fill(1.2) }],
    }),
  },
  {
    name: 'Conv whose weights are a Constant node',
    concerned: true,
    ...qdqConv({
      dequantise: [
        {
          op: 'Constant',
          inputs: [],
          outputs: ['w'],
          value: { name: '', shape: [16, 16, 3, 3], data: new Int8Array(16 * 16 * 9).fill(120) },
        },
        node('DequantizeLinear', ['w', 'sw', 'zw'], 'dw'),
      ],
      constants: () => [],
    }),
  },
  { name: 'MatMul', concerned: true, ...qdqProduct('MatMul', {}) },
  { name: 'MatMul with float output', concerned: true, ...qdqProduct('MatMul', { floatOutput: true }) },
  { name: 'MatMul of int8 activations', concerned: true, ...qdqProduct('MatMul', { activations: 'int8' }) },
  { name: 'Gemm', concerned: true, ...qdqProduct('Gemm', {}) },
  { name: 'Gemm with float output', concerned: true, ...qdqProduct('Gemm', { floatOutput: true }) },
  { name: 'QLinearConv', concerned: true, ...integerLayer('QLinearConv') },
  { name: 'QLinearMatMul', concerned: true, ...integerLayer('QLinearMatMul') },
  { name: 'MatMulInteger', concerned: true, ...integerLayer('MatMulInteger') },
  { name: 'MatMulIntegerToFloat', concerned: true, ...integerLayer('MatMulIntegerToFloat') },
  { name: 'MatMulInteger behind DynamicQuantizeLinear', concerned: true, ...dynamicProduct() },

  { name: 'Conv of 7 bits', concerned: false, ...qdqConv({ weight: 64 }) },
  { name: 'Conv of uint8 weights', concerned: false, ...qdqConv({ weights: 'uint8', weight: 250 }) },
  { name: 'Conv depthwise', concerned: false, ...qdqConv({ group: channels }) },
  { name: 'Conv with float output', concerned: false, ...qdqConv({ floatOutput: true }) },
  { name: 'MatMul of 7 bits', concerned: false, ...qdqProduct('MatMul', { weight: 64 }) },
  {
    name: 'MatMul of uint8 weights',
    concerned: false,
    ...qdqProduct('MatMul', { weights: 'uint8', weight: 250 }),
  },
  {
    name: 'MatMulInteger of int8 by int8',
    concerned: false,
    ...integerLayer('MatMulInteger', { activations: 'int8' }),
  },
  { name: 'ConvInteger', concerned: false, ...integerLayer('ConvInteger') },
  { name: 'QLinearConv of 7 bits', concerned: false, ...integerLayer('QLinearConv', { weight: 64 }) },
]

/**
 * A 64x64 detector whose one box has a score of 0.9 on a black picture, from sums of weights of 8 bits; 0.63 where two products are added
 * in 16 bits.
 */
export function quantisedDetector(): Uint8Array {
  const anchors = 84
  const values = new Float32Array(6 * anchors)
  for (const [row, value] of [32, 16, 20, 8].entries()) values[row * anchors] = value
  const slope = new Float32Array(6 * anchors)
  slope[5 * anchors] = 1
  return buildOnnx({
    inputs: [{ name: 'images', type: 'uint8', shape: ['batch', 64, 64, 3] }],
    outputs: [{ name: 'output0', type: 'float32', shape: ['batch', 6, anchors] }],
    nodes: [
      node('Cast', ['images'], 'pixels', { to: 1 }),
      { op: 'ReduceMean', inputs: ['pixels'], outputs: ['means'], attributes: { axes: [1, 2], keepdims: 0 } },
      node('Add', ['means', 'one'], 'x'),
      ...activationPair,
      node('DequantizeLinear', ['w', 'sw', 'zw'], 'dw'),
      node('MatMul', ['dx', 'dw'], 'products'),
      node('Gather', ['products', 'first'], 'sum', { axis: 1 }),
      node('Unsqueeze', ['sum', 'last'], 'signal'),
      node('Mul', ['signal', 'slope'], 'varying'),
      node('Add', ['varying', 'base'], 'output0'),
    ],
    constants: [
      ...common('uint8', 'int8').filter(({ name }) => name !== 'sw'),
      scalar('sw', Float32Array.of(0.9 / 3 / 120)),
      scalar('one', Float32Array.of(1)),
      { name: 'first', shape: [1], data: BigInt64Array.of(0n) },
      { name: 'last', shape: [1], data: BigInt64Array.of(2n) },
      { name: 'w', shape: [3, columns], data: filled('int8', 3 * columns, 120) },
      { name: 'slope', shape: [1, 6, anchors], data: slope },
      { name: 'base', shape: [1, 6, anchors], data: values },
    ],
    metadata: namesMetadata(['blue', 'red']),
  })
}
