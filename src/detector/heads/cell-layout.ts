import type { SizePx } from '../../vision/letterbox.js'

/**
 * How an output holds a row of numbers for each cell of a grid:
 * - `rows`: `[N, cells, numbers]`; `columns`: `[N, numbers, cells]`; both without `N` for one picture
 * - `maps`: `[N, numbers, H, W]`; `pixels`: `[N, H, W, numbers]`
 */
export const cellLayouts = ['rows', 'columns', 'maps', 'pixels'] as const
export type CellLayout = (typeof cellLayouts)[number]

/** Cells of a grid, the last of which may be partial. */
export type CellGrid = Readonly<{ columns: number; rows: number }>

export function gridOf(input: SizePx, stride: number): CellGrid {
  return { columns: Math.ceil(input.widthPx / stride), rows: Math.ceil(input.heightPx / stride) }
}

export function cellsIn(grids: readonly CellGrid[]): number {
  return grids.reduce((sum, { columns, rows }) => sum + columns * rows, 0)
}

/**
 * How many numbers an output of that layout has for each cell of the grids, which follow one another.
 *
 * @returns `undefined` if its shape is not that of the grids; a text where the file does not tell.
 */
export function numbersOf(
  shape: readonly (number | string)[],
  layout: CellLayout,
  grids: readonly CellGrid[],
): number | string | undefined {
  const [a, b, c] = shape.slice(-3)
  const flat = shape.length === 2 ? shape : shape.length === 3 ? shape.slice(1) : []
  const cells = cellsIn(grids)
  const [only] = grids
  const isMap = shape.length === 4 && grids.length === 1 && only !== undefined
  switch (layout) {
    case 'rows':
      return flat[0] === cells ? flat[1] : undefined
    case 'columns':
      return flat[1] === cells ? flat[0] : undefined
    case 'maps':
      return isMap && b === only.rows && c === only.columns ? a : undefined
    case 'pixels':
      return isMap && a === only.rows && b === only.columns ? c : undefined
    default:
      return layout satisfies never
  }
}

/** Where numbers of cells stand in an output: steps in elements. */
export type CellPlace = Readonly<{
  /** Of the outputs of a head. */
  output: number
  /** Elements of one frame. */
  frameStep: number
  /** Of the first number of the first cell, in a frame. */
  start: number
  cellStep: number
  valueStep: number
}>

/** The place of numbers `from` on of each cell, in an output that has `numbers` for each of `cells`. */
export function cellPlace(
  output: number,
  layout: CellLayout,
  { cells, numbers, from = 0 }: Readonly<{ cells: number; numbers: number; from?: number }>,
): CellPlace {
  const isPlanar = layout === 'columns' || layout === 'maps'
  const [cellStep, valueStep] = isPlanar ? [1, cells] : [numbers, 1]
  return { output, frameStep: cells * numbers, start: from * valueStep, cellStep, valueStep }
}
