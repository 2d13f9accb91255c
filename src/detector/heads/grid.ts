import type { SizePx } from '../../vision/letterbox.js'

/** Cell sizes of the grids that detectors of the YOLO family use: the usual three, with a finer and a coarser one, and tiny. */
export const knownStrides: readonly (readonly number[])[] = [
  [8, 16, 32],
  [8, 16, 32, 64],
  [4, 8, 16, 32],
  [16, 32],
]

/** Cells of all grids together. */
export function gridCells(input: SizePx, strides: readonly number[]): number {
  return strides.reduce(
    (sum, stride) => sum + Math.floor(input.widthPx / stride) * Math.floor(input.heightPx / stride),
    0,
  )
}

/** The grids that have so many cells, `perCell` anchors in each. */
export function stridesFor(input: SizePx, anchors: number, perCell: number): readonly number[] | undefined {
  return knownStrides.find((strides) => gridCells(input, strides) * perCell === anchors)
}
