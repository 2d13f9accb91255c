import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parametersText } from './ensemble-text.js'
import { buildOnnx, type Constant, type Node, type TensorSpec } from './onnx-builder.js'
import { namesMetadata } from './onnx-models.js'

/**
 * - `follows`: a point for each cell of strides 8, 16 and 32 of whatever comes
 * - `constant`: as many points as 64x64 has, whatever comes
 * - `reshapes`: takes any picture and fails on those of another size than 64x64
 */
export type FreeSizeKind = 'follows' | 'constant' | 'reshapes'

const strides = [8, 16, 32]

/**
 * A YOLOv8 head of the classes `blue` and `red` behind an input whose height and width are free, exported with 64x64. Every point is a box
 * around (32, 16) of 20x8 pixels of class `red`, whose score is the red of its cell, or of the picture.
 */
export function freeSizeDetector(
  kind: FreeSizeKind,
  metadata: Readonly<Record<string, string>> = { imgsz: '[64, 64]', stride: '8' },
): Uint8Array {
  const images: TensorSpec = {
    name: 'images',
    type: 'float32',
    shape: ['batch', 3, 'height', 'width'],
  }
  const weight = new Float32Array(6 * 3)
  weight[5 * 3] = 1
  const constants: Constant[] = [
    { name: 'weight', shape: [6, 3, 1, 1], data: weight },
    { name: 'bias', shape: [6], data: Float32Array.of(32, 16, 20, 8, 0, 0) },
    { name: 'flat', shape: [3], data: BigInt64Array.of(0n, 6n, -1n) },
    { name: 'square', shape: [4], data: BigInt64Array.of(-1n, 3n, 64n, 64n) },
    { name: 'whole', shape: [3], data: BigInt64Array.of(1n, 1n, 84n) },
  ]
  return buildOnnx({
    inputs: [images],
    outputs: [{ name: 'output0', type: 'float32', shape: ['batch', 6, 'points'] }],
    nodes: kind === 'constant' ? constantPoints : followingPoints(kind === 'reshapes'),
    constants,
    metadata: { ...namesMetadata(['blue', 'red']), ...metadata },
  })
}

const constantPoints: readonly Node[] = [
  { op: 'GlobalAveragePool', inputs: ['images'], outputs: ['mean'] },
  { op: 'Conv', inputs: ['mean', 'weight', 'bias'], outputs: ['point'] },
  { op: 'Reshape', inputs: ['point', 'flat'], outputs: ['one'] },
  { op: 'Tile', inputs: ['one', 'whole'], outputs: ['output0'] },
]

function followingPoints(reshapes: boolean): readonly Node[] {
  return [
    reshapes
      ? { op: 'Reshape', inputs: ['images', 'square'], outputs: ['pixels'] }
      : { op: 'Identity', inputs: ['images'], outputs: ['pixels'] },
    ...strides.flatMap((stride): Node[] => [
      {
        op: 'AveragePool',
        inputs: ['pixels'],
        outputs: [`mean_${stride}`],
        attributes: { kernel_shape: [stride, stride], strides: [stride, stride] },
      },
      { op: 'Conv', inputs: [`mean_${stride}`, 'weight', 'bias'], outputs: [`cells_${stride}`] },
      { op: 'Reshape', inputs: [`cells_${stride}`, 'flat'], outputs: [`points_${stride}`] },
    ]),
    {
      op: 'Concat',
      inputs: strides.map((stride) => `points_${stride}`),
      outputs: ['output0'],
      attributes: { axis: 2 },
    },
  ]
}

const models = join(import.meta.dirname, '../../models')

/** The published float32 detector with `gantry.input_size: rect` alone: its size is free, multiples of 32, exported with 416x416. */
export function addFreePpeDetector(repository: string, name: string): void {
  mkdirSync(join(repository, name, '1'), { recursive: true })
  copyFileSync(join(models, 'ppe_detect/1/model.onnx'), join(repository, name, '1/model.onnx'))
  writeFileSync(join(repository, name, 'config.pbtxt'), parametersText({ 'gantry.input_size': 'rect' }))
}
