import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOnnx, elementTypes, type Constant, type Node, type TensorSpec } from './onnx-builder.js'

export type TestInput = `${'float32' | 'float16' | 'float64' | 'uint8' | 'int8'}-${'nchw' | 'nhwc'}`

export type DetectorSpec = Readonly<{
  input: TestInput
  widthPx: number
  heightPx: number
  /** Shape of the output without its batch dimension. */
  rows: number
  columns: number
  /** Values of the output that do not depend on the picture, by index. */
  fixed?: Readonly<Record<number, number>>
  /** Values that are the mean of the first colour channel, divided by this number, by index. */
  signal?: Readonly<Record<number, number>>
  metadata?: Readonly<Record<string, string>>
  /** 1 for a model that takes no batches. */
  batch?: number | string
  outputName?: string
  /** What the values are cast to at the end. */
  outputType?: 'float32' | 'float16' | 'int8'
  outputShape?: readonly (number | string)[]
}>

/**
 * A detector in a few nodes: everything it says is fixed, but for the values that follow the first colour channel of the
 * picture, so that a test sees what pixels really entered the model, and in which order and range.
 */
export function detectorOnnx(spec: DetectorSpec): Uint8Array {
  const { input, widthPx, heightPx, rows, columns, batch = 'batch' } = spec
  const hwc = input.endsWith('nhwc')
  const type = input.split('-')[0] as 'float32' | 'float16' | 'float64' | 'uint8' | 'int8'
  const shape = hwc ? [batch, heightPx, widthPx, 3] : [batch, 3, heightPx, widthPx]
  const images: TensorSpec = { name: 'images', type, shape }
  const base = filled(rows * columns, spec.fixed ?? {})
  const slope = filled(
    rows * columns,
    Object.fromEntries(Object.entries(spec.signal ?? {}).map(([index, divisor]) => [index, 1 / divisor])),
  )
  const { outputName: output = 'output0', outputType = 'float32' } = spec
  const nodes: Node[] = [
    ...(type === 'float32'
      ? [{ op: 'Identity', inputs: ['images'], outputs: ['pixels'] }]
      : [{ op: 'Cast', inputs: ['images'], outputs: ['pixels'], attributes: { to: 1 } }]),
    {
      op: 'ReduceMean',
      inputs: ['pixels'],
      outputs: ['means'],
      attributes: { axes: hwc ? [1, 2] : [2, 3], keepdims: 0 },
    },
    { op: 'Gather', inputs: ['means', 'first'], outputs: ['channel'], attributes: { axis: 1 } },
    { op: 'Unsqueeze', inputs: ['channel', 'last'], outputs: ['signal'] },
    { op: 'Mul', inputs: ['signal', 'slope'], outputs: ['varying'] },
    { op: 'Add', inputs: ['varying', 'base'], outputs: ['values'] },
    { op: 'Cast', inputs: ['values'], outputs: [output], attributes: { to: elementTypes[outputType] } },
  ]
  return buildOnnx({
    inputs: [images],
    outputs: [{ name: output, type: outputType, shape: spec.outputShape ?? [batch, rows, columns] }],
    nodes,
    constants: [
      { name: 'first', shape: [1], data: BigInt64Array.of(0n) },
      { name: 'last', shape: [1], data: BigInt64Array.of(2n) },
      { name: 'slope', shape: [1, rows, columns], data: slope },
      { name: 'base', shape: [1, rows, columns], data: base },
    ],
    ...(spec.metadata === undefined ? {} : { metadata: spec.metadata }),
  })
}

function filled(length: number, values: Readonly<Record<number, number>>): Float32Array {
  const data = new Float32Array(length)
  for (const [index, value] of Object.entries(values)) data[Number(index)] = value
  return data
}

/** Metadata as the YOLO family's exporters write it. */
export function namesMetadata(labels: readonly string[]): Record<string, string> {
  return { names: `{${labels.map((label, index) => `${index}: '${label}'`).join(', ')}}` }
}

/**
 * A 64x64 model with a YOLOv8 head of two classes and 84 points. Point 0 is a box around (32, 16) of 20x8 pixels of class
 * `red`, whose score is the mean red of the picture in 0..1.
 */
export function redDetector(input: TestInput, batch?: DetectorSpec['batch']): Uint8Array {
  const anchors = 84
  return detectorOnnx({
    input,
    widthPx: 64,
    heightPx: 64,
    rows: 6,
    columns: anchors,
    fixed: {
      0: 32,
      [anchors]: 16,
      [2 * anchors]: 20,
      [3 * anchors]: 8,
      [5 * anchors]: input.startsWith('int8') ? 128 / 255 : 0,
    },
    signal: { [5 * anchors]: input.startsWith('float') ? 1 : 255 },
    metadata: namesMetadata(['blue', 'red']),
    ...(batch === undefined ? {} : { batch }),
  })
}

/** Puts a model into a repository. @returns the model's folder. */
export function addModel(
  repositoryDir: string,
  name: string,
  files: Readonly<{ onnx?: Uint8Array; config?: string; labels?: string; version?: number }>,
): string {
  const dir = join(repositoryDir, name)
  mkdirSync(dir, { recursive: true })
  if (files.onnx !== undefined) {
    mkdirSync(join(dir, String(files.version ?? 1)), { recursive: true })
    writeFileSync(join(dir, String(files.version ?? 1), 'model.onnx'), files.onnx)
  }
  if (files.config !== undefined) writeFileSync(join(dir, 'config.pbtxt'), files.config)
  if (files.labels !== undefined) writeFileSync(join(dir, 'labels.txt'), files.labels)
  return dir
}

/** A model that gives the same whatever it sees: the constants, under their names without `const_`. */
export function constantOnnx(
  inputs: readonly TensorSpec[],
  constants: readonly Constant[],
  nodes: readonly Node[] = [],
  outputs: readonly TensorSpec[] = [],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const given = constants.filter(({ name }) => !nodes.some((node) => node.inputs.includes(`const_${name}`)))
  return buildOnnx({
    inputs,
    outputs: [
      ...given.map(({ name, shape, data }): TensorSpec => ({
        name,
        shape,
        type: data instanceof Float32Array ? 'float32' : data instanceof Uint8Array ? 'uint8' : 'int64',
      })),
      ...outputs,
    ],
    constants: constants.map((constant) => ({ ...constant, name: `const_${constant.name}` })),
    nodes: [
      ...given.map(({ name }) => ({ op: 'Identity', inputs: [`const_${name}`], outputs: [name] })),
      ...nodes,
    ],
    metadata,
  })
}

/** Multiplies 2,048 x 2,048 numbers 400 times, which takes minutes. */
export function endlessOnnx(): Uint8Array {
  const side = 2_048n
  const times = Array.from({ length: 400 }, (_, index) => ({
    op: 'MatMul',
    inputs: [`m${index}`, 'm0'],
    outputs: [`m${index + 1}`],
  }))
  return buildOnnx({
    inputs: [],
    outputs: [{ name: 'm400', type: 'float32', shape: ['n', 'n'] }],
    nodes: [{ op: 'ConstantOfShape', inputs: ['shape'], outputs: ['m0'] }, ...times],
    constants: [{ name: 'shape', shape: [2], data: BigInt64Array.of(side, side) }],
  })
}

/** A `js` model in a repository. */
export function addJsModel(repository: string, name: string, tensors: string, code: string): void {
  const dir = addModel(repository, name, { config: `backend: "js"\n${tensors}` })
  mkdirSync(join(dir, '1'))
  writeFileSync(join(dir, '1', 'model.js'), code)
}
