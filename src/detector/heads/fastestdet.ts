import type { SizePx } from '../../vision/letterbox.js'
import { activated, bestClassAt, scoreInRow, sigmoid } from './activation.js'
import type { Candidates } from './candidates.js'
import { type CellPlace, cellPlace } from './cell-layout.js'
import type { HeadOptions, OutputHead, ScoreBlock } from './head.js'

/** Numbers of a cell before its class scores: objectness, x, y, width, height. */
const before = 5

/** Where the numbers of a FastestDet are: its grid, which may be in planes or pixel by pixel. */
export type FastestdetGrid = Readonly<{ columns: number; rows: number; isPlanar: boolean }>

/** The grid of an output `[N, 5 + classes, H, W]` or `[N, H, W, 5 + classes]` with square cells; `undefined` if it is none. */
export function fastestdetGrid(
  shape: readonly (number | string)[],
  input: SizePx,
  numbers: number,
): FastestdetGrid | undefined {
  const [, a, b, c] = shape
  const fits = (rows: unknown, columns: unknown) =>
    typeof rows === 'number' &&
    typeof columns === 'number' &&
    rows > 0 &&
    input.heightPx % rows === 0 &&
    input.heightPx / rows === input.widthPx / columns
  if (shape.length !== 4) return undefined
  if (a === numbers && fits(b, c)) return { rows: b as number, columns: c as number, isPlanar: true }
  if (c === numbers && fits(a, b)) return { rows: a as number, columns: b as number, isPlanar: false }
  return undefined
}

/**
 * One grid with, for each cell, objectness, x, y, width and height, and class scores: `score = objectness ** 0.6 * class ** 0.4`, the
 * centre by tanh from the corner of the cell, the size by sigmoid as a part of the picture.
 *
 * @see dog-qiuqiu/FastestDet, utils/tool.py `handle_preds` and module/custom_layers.py `DetectHead`
 */
export class FastestdetHead implements OutputHead {
  readonly needsNms = true
  readonly #place: CellPlace

  constructor(
    readonly classes: number,
    readonly input: SizePx,
    readonly grid: FastestdetGrid,
    readonly options: HeadOptions,
  ) {
    const { rows, columns, isPlanar } = grid
    this.#place = cellPlace(0, isPlanar ? 'maps' : 'pixels', {
      cells: rows * columns,
      numbers: before + classes,
    })
  }

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const { rows, columns } = this.grid
    const { cellStep, valueStep } = this.#place
    const { activation } = this.options
    // A softmax is of classes: beside it, objectness is a number of its own.
    const ofObject = activation === 'softmax' ? 'sigmoid' : activation
    for (let cell = 0, at = start; cell < rows * columns; cell++, at += cellStep) {
      const objectness = activated(output[at]!, ofObject) ** 0.6
      if (!(objectness >= minScore)) continue
      const classesAt = at + before * valueStep
      const best = bestClassAt(output, classesAt, this.classes, valueStep)
      const score =
        objectness * scoreInRow(output, classesAt, this.classes, best, activation, valueStep) ** 0.4
      if (!(score >= minScore)) continue
      const number = (index: number) => output[at + index * valueStep]!
      out.pushCentre(
        ((Math.tanh(number(1)) + (cell % columns)) / columns) * this.input.widthPx,
        ((Math.tanh(number(2)) + Math.floor(cell / columns)) / rows) * this.input.heightPx,
        sigmoid(number(3)) * this.input.widthPx,
        sigmoid(number(4)) * this.input.heightPx,
        score,
        best,
      )
    }
  }

  scoreBlocks(start: number): readonly ScoreBlock[] {
    const { cellStep, valueStep } = this.#place
    const all = {
      output: 0,
      rows: this.grid.rows * this.grid.columns,
      rowStep: cellStep,
      columnStep: valueStep,
    }
    return [
      { ...all, start, columns: 1 },
      { ...all, start: start + before * valueStep, columns: this.classes },
    ]
  }
}
