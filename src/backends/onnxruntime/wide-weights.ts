import { closeSync, openSync, readSync } from 'node:fs'
import type { ModelConfig } from '../../repository/model-config.js'
import { fileBeside } from '../../repository/external-data.js'
import { readOnnx } from '../../repository/onnx-file.js'
import {
  type DataPlace,
  type OnnxConstant,
  type OnnxNode,
  readOnnxNodes,
} from '../../repository/onnx-nodes.js'
import { addsInt8In16Bits, type Processor, thisProcessor } from './processor.js'
import { sessionConfig } from './session-settings.js'
import { type OnnxType, onnxTypeOf } from '../../tensors/element-type.js'

/** The largest amount of a weight of which two, each times 255, fit 16 bits with a sign. */
export const largestSafeWeight = 64

/** Layers that run in kernels for uint8 activations and int8 weights, and those of them with a weight beyond {@link largestSafeWeight}. */
export type WideWeights = Readonly<{ layers: number; wide: number; example: string }>

/** Which inputs of an operator on integers are weights, and which one is the zero point of its activations. */
const integerOperators: Readonly<
  Record<string, Readonly<{ weights: readonly number[]; zeroPoint?: number }>>
> = {
  QLinearConv: { weights: [3], zeroPoint: 2 },
  QLinearMatMul: { weights: [3], zeroPoint: 2 },
  MatMulInteger: { weights: [1], zeroPoint: 2 },
  // What ONNX Runtime's own tools write into a file.
  MatMulIntegerToFloat: { weights: [1], zeroPoint: 4 },
  DynamicQuantizeMatMul: { weights: [1] },
  DynamicQuantizeLSTM: { weights: [1, 2] },
  QGemm: { weights: [3], zeroPoint: 2 },
  QAttention: { weights: [1], zeroPoint: 6 },
}

/** Operators that become ones on integers between DequantizeLinear and QuantizeLinear; a Conv does only where both are there. */
const floatOperators = new Set(['Conv', 'MatMul', 'Gemm'])

/** Pass values on as they are. */
const passing = new Set(['Identity', 'Reshape', 'Transpose', 'Squeeze', 'Unsqueeze', 'Flatten'])
/** What ONNX Runtime takes into the convolution before it. */
const activations = new Set(['Relu', 'Clip'])

/**
 * What to say of a model whose int8 weights ONNX Runtime adds up wrongly on a processor; undefined where there is nothing to say.
 * Nodes and int8 weights of its file are read, nothing is run.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID`
 */
export function saturationOf(
  model: Readonly<{ path: string; config: ModelConfig }>,
  processor: Processor = thisProcessor(),
): Readonly<{ detail: string; fix: string }> | undefined {
  if (!addsInt8In16Bits(processor)) return undefined
  if (sessionConfig(model.config)[exact] === '1') return undefined
  const { layers, wide, example } = readWideWeights(model.path)
  if (wide === 0) return undefined
  return {
    detail: `results can be wrong on this processor (AVX2 without VNNI): in ${wide} of ${layers} int8 layers, such as "${example}", weights use all 8 bits, and sums of their products can exceed the 16 bits they are added in`,
    fix: `quantise the weights to 7 bits (reduce_range=True), or use the float model, or set parameters { key: "${exact}" value { string_value: "1" } } in its config.pbtxt, which is right and slower`,
  }
}

const exact = 'session.x64quantprecision'

/**
 * Looks for int8 weights that use more than 7 bits.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID`
 */
export function readWideWeights(path: string): WideWeights {
  return readOnnx(path, (cursor) => {
    const graph = new QuantisedGraph(readOnnxNodes(cursor))
    const layers = graph.layers()
    const wide = layers.filter(({ weights }) => weights.some((weight) => isWide(weight, path, cursor.fd)))
    return { layers: layers.length, wide: wide.length, example: wide[0]?.name ?? '' }
  })
}

/** Weights of a layer: int8 constants, or `quantised here` for floats that the model itself quantises to int8, to all of its range. */
type Weight = OnnxConstant | 'quantised here'
type Layer = Readonly<{ name: string; weights: readonly Weight[] }>

class QuantisedGraph {
  readonly #maker = new Map<string, OnnxNode>()
  readonly #readers = new Map<string, OnnxNode[]>()
  readonly #nodes: readonly OnnxNode[]
  readonly #constants: ReadonlyMap<string, OnnxConstant>

  constructor({ nodes, constants }: ReturnType<typeof readOnnxNodes>) {
    this.#nodes = nodes
    this.#constants = constants
    for (const node of nodes) {
      for (const output of node.outputs) this.#maker.set(output, node)
      for (const input of node.inputs) {
        const readers = this.#readers.get(input)
        if (readers === undefined) this.#readers.set(input, [node])
        else readers.push(node)
      }
    }
  }

  layers(): Layer[] {
    return this.#nodes.flatMap((node) => {
      const weights = this.#weightsOf(node)
      return weights.length === 0 ? [] : [{ name: node.name === '' ? node.op : node.name, weights }]
    })
  }

  #weightsOf(node: OnnxNode): Weight[] {
    const found = this.#weightTensors(node).flatMap((tensor) => this.#int8(tensor) ?? [])
    return isDepthwise(node, found[0]) ? [] : found
  }

  #weightTensors(node: OnnxNode): readonly (string | undefined)[] {
    const operator = integerOperators[node.op]
    if (operator !== undefined)
      return this.#zeroPointType(node, operator.zeroPoint) === 'int8'
        ? []
        : operator.weights.map((at) => node.inputs[at])
    if (!floatOperators.has(node.op) || !this.#isByte(node.inputs[0])) return []
    if (node.op === 'Conv' && !this.#isQuantised(node.outputs[0])) return []
    const weight = this.#source(node.inputs[1])
    return weight !== undefined && isNode(weight, 'DequantizeLinear') ? [weight.inputs[0]] : []
  }

  /** What makes a tensor, behind what only passes it on: a node, or a constant. */
  #source(tensor = ''): OnnxNode | OnnxConstant | undefined {
    const seen = new Set<string>()
    let name = tensor
    for (;;) {
      const node = this.#maker.get(name)
      if (node === undefined) return this.#constants.get(name)
      if (!passing.has(node.op) || seen.has(name)) return node
      seen.add(name)
      name = node.inputs[0] ?? ''
    }
  }

  /** Whether it is what a byte stood for. ONNX Runtime makes int8 activations uint8 ones on these processors. */
  #isByte(tensor: string | undefined): boolean {
    const node = this.#source(tensor)
    if (node === undefined || !isNode(node, 'DequantizeLinear')) return false
    return ['uint8', 'int8'].includes(this.#zeroPointType(node, 2) ?? 'uint8')
  }

  #isQuantised(tensor = ''): boolean {
    return (this.#readers.get(tensor) ?? []).some(
      ({ op, outputs }) => op === 'QuantizeLinear' || (activations.has(op) && this.#isQuantised(outputs[0])),
    )
  }

  #int8(tensor: string | undefined): Weight | undefined {
    const source = this.#source(tensor)
    if (source === undefined) return undefined
    if (!('op' in source)) return source.type === 'int8' ? source : undefined
    if (!isNode(source, 'QuantizeLinear')) return undefined
    const ofConstant = !('op' in (this.#source(source.inputs[0]) ?? { op: '' }))
    const type = this.#zeroPointType(source, 2) ?? onnxTypeOf(source.attributes.output_dtype ?? 0)
    return ofConstant && type === 'int8' ? 'quantised here' : undefined
  }

  #zeroPointType({ inputs }: OnnxNode, at = -1): OnnxType | undefined {
    return this.#constants.get(inputs[at] ?? '')?.type
  }
}

function isNode(source: OnnxNode | OnnxConstant, op: string): source is OnnxNode {
  return 'op' in source && source.op === op
}

/** Those have a kernel that adds in 32 bits. */
function isDepthwise({ attributes }: OnnxNode, weight: Weight | undefined): boolean {
  if (weight === undefined || weight === 'quantised here') return false
  const [outputs, inputs] = weight.shape
  return inputs === 1 && attributes.group === outputs
}

const windowBytes = 64 * 1024

function isWide(weight: Weight, path: string, fd: number): boolean {
  if (weight === 'quantised here') return true
  if (weight.data === undefined) return false
  const { location } = weight.data
  if (location === undefined) return holdsWide(fd, weight.data)
  const beside = openBeside(path, location)
  if (beside === undefined) return false
  try {
    return holdsWide(beside, weight.data)
  } finally {
    closeSync(beside)
  }
}

/** Weights in a file of their own; undefined where it is not there, or not in the model's folder. */
function openBeside(path: string, location: string): number | undefined {
  const file = fileBeside(path, location)
  if (file === undefined) return undefined
  try {
    return openSync(file, 'r')
  } catch {
    return undefined
  }
}

/** Reads window by window until a weight is too large. */
function holdsWide(fd: number, { offset, bytes = Infinity, packed }: DataPlace): boolean {
  const window = Buffer.alloc(windowBytes)
  const { isWide } = packed ? packedWeights() : plainWeights
  for (let done = 0; done < bytes;) {
    const got = readSync(fd, window, 0, Math.min(windowBytes, bytes - done), offset + done)
    if (got === 0) return false
    for (let at = 0; at < got; at++) if (isWide(window[at]!)) return true
    done += got
  }
  return false
}

/** Takes the bytes one by one, and says when a weight is too large. */
type Weights = Readonly<{ isWide: (byte: number) => boolean }>

const plainWeights: Weights = { isWide: (byte) => isTooLarge(byte) }

/** Of varints, whose first two bytes hold the lowest eight bits. */
function packedWeights(): Weights {
  let at = 0
  let low = 0
  return {
    isWide: (byte) => {
      if (at === 0) low = byte & 0x7f
      else if (at === 1) low |= (byte & 1) << 7
      at = byte < 0x80 ? 0 : at + 1
      return at === 0 && isTooLarge(low)
    },
  }
}

function isTooLarge(byte: number): boolean {
  return Math.abs(byte < 128 ? byte : byte - 256) > largestSafeWeight
}
