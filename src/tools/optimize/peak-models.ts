import { type GraphConstant, type GraphNode, modelBytes } from '../../repository/onnx-writer.js'

/** Arithmetic whose peak is measured. */
export const peakKinds = ['float32', 'int8'] as const
export type PeakKind = (typeof peakKinds)[number]

/** Rows and columns: large enough that a product is all that takes time. */
const rows = 256
const width = 1_024
const products = 8

/** Multiplications and additions of a run, each counted as one. */
export const peakOperations = 2 * rows * width * width * products

/**
 * A model that does little but multiply matrices: `x [256, 1024]` by eight weights of `[1024, 1024]`, one after another; its output is a
 * single number. In int8 the weights have the 7 bits that are right on every processor.
 */
export function peakModel(kind: PeakKind): Uint8Array {
  const type = kind === 'float32' ? 'float32' : 'uint8'
  const nodes: GraphNode[] = []
  const constants: GraphConstant[] = kind === 'float32' ? [] : scales()
  let last = 'x'
  for (let at = 0; at < products; at++) {
    const [weight, product] = [`w${at}`, `y${at}`]
    constants.push({ name: weight, shape: [width, width], data: weights(kind, at) })
    nodes.push(
      kind === 'float32'
        ? { op: 'MatMul', inputs: [last, weight], outputs: [product] }
        : {
            op: 'QLinearMatMul',
            inputs: [last, 'scale', 'zero', weight, 'scale', 'weightZero', 'productScale', 'zero'],
            outputs: [product],
          },
    )
    last = product
  }
  nodes.push({ op: 'ReduceMax', inputs: [last], outputs: ['most'], attributes: { keepdims: 0 } })
  return modelBytes({
    opset: 13,
    inputs: [{ name: 'x', type, shape: [rows, width] }],
    nodes,
    constants,
    outputs: [{ name: 'most', type, shape: [] }],
  })
}

function scales(): GraphConstant[] {
  return [
    { name: 'scale', shape: [], data: Float32Array.of(0.01) },
    { name: 'productScale', shape: [], data: Float32Array.of(0.1) },
    { name: 'zero', shape: [], data: Uint8Array.of(128) },
    { name: 'weightZero', shape: [], data: Int8Array.of(0) },
  ]
}

/** Small and of both signs, so that nothing overflows and nothing is left out for being 0. */
function weights(kind: PeakKind, at: number): Float32Array | Int8Array {
  const value = (index: number) => ((index * 7 + at * 13) % 127) - 63
  return kind === 'float32'
    ? Float32Array.from({ length: width * width }, (_, index) => value(index) / 4_096)
    : Int8Array.from({ length: width * width }, (_, index) => value(index))
}
