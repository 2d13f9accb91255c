import { buildOnnx, type Node } from './onnx-builder.js'
import { namesMetadata } from './onnx-models.js'

export type FixedDetectorSpec = Readonly<{
  /** Width and height of the input; 64 without it. */
  sidePx?: number
  /** Where the box is, from the left, as a share of the input; 0.5 without it. */
  at?: number
  /** Products of two matrices of 1,024 x 1,024 that each run takes beside; none without it. */
  products?: number
  /** A step that no runtime knows: the file can be read, and not be loaded. */
  isUnknown?: boolean
}>

const matrixSide = 1_024n

/** A detector that finds one `red` in every picture, at the same place of it whatever the size of its input is. */
export function fixedDetector({
  sidePx = 64,
  at = 0.5,
  products = 0,
  isUnknown = false,
}: FixedDetectorSpec = {}): Uint8Array {
  const points = [8, 16, 32].reduce((sum, stride) => sum + (sidePx / stride) ** 2, 0)
  const base = new Float32Array(6 * points)
  for (const [row, value] of [at * sidePx, 0.5 * sidePx, 0.3 * sidePx, 0.2 * sidePx, 0, 0.9].entries())
    base[row * points] = value
  const ballast: Node[] = Array.from({ length: products }, (_, index) => ({
    op: 'MatMul',
    inputs: [`matrix${index}`, 'matrix0'],
    outputs: [`matrix${index + 1}`],
  }))
  return buildOnnx({
    inputs: [{ name: 'images', type: 'uint8', shape: [1, sidePx, sidePx, 3] }],
    outputs: [{ name: 'output0', type: 'float32', shape: [1, 6, points] }],
    nodes: [
      { op: 'Cast', inputs: ['images'], outputs: ['pixels'], attributes: { to: 1 } },
      {
        op: 'ReduceMean',
        inputs: ['pixels'],
        outputs: ['mean'],
        attributes: { axes: [1, 2, 3], keepdims: 0 },
      },
      { op: 'Mul', inputs: ['mean', 'little'], outputs: ['signal'] },
      // A matrix whose products stay as large as it is, and that depends on the picture: it cannot be reckoned beforehand.
      { op: 'Add', inputs: ['signal', 'share'], outputs: ['element'] },
      { op: 'Expand', inputs: ['element', 'square'], outputs: ['matrix0'] },
      ...ballast,
      {
        op: isUnknown ? 'NoSuchStep' : 'ReduceMean',
        inputs: [`matrix${products}`],
        outputs: ['product'],
        attributes: { axes: [0, 1], keepdims: 0 },
      },
      { op: 'Mul', inputs: ['product', 'little'], outputs: ['nothing'] },
      { op: 'Add', inputs: ['base', 'nothing'], outputs: ['output0'] },
    ],
    constants: [
      { name: 'little', shape: [1], data: Float32Array.of(1e-12) },
      { name: 'share', shape: [1], data: Float32Array.of(1 / Number(matrixSide)) },
      { name: 'square', shape: [2], data: BigInt64Array.of(matrixSide, matrixSide) },
      { name: 'base', shape: [1, 6, points], data: base },
    ],
    metadata: namesMetadata(['blue', 'red']),
  })
}
