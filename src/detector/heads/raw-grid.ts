import type { SizePx } from '../../vision/letterbox.js'
import { sigmoid } from './activation.js'
import type { Candidates } from './candidates.js'
import type { Head, HeadOptions, ScoreBlock } from './head.js'

/** Where the numbers of a cell stand in an output. */
export type GridLayout = Readonly<{
  anchors: number
  rows: number
  columns: number
  /** Steps in elements from one anchor, row, column and number to the next. */
  anchorStep: number
  rowStep: number
  columnStep: number
  valueStep: number
}>

/**
 * `[N, A, H, W, V]`, `[N, A * V, H, W]` or `[N, H, W, A * V]`, whichever fits `values` numbers for each anchor.
 *
 * @returns `undefined` if none does.
 */
export function gridLayout(
  shape: readonly number[],
  values: number,
  anchors: number,
): GridLayout | undefined {
  const [, a = 0, b = 0, c = 0, d = 0] = shape
  if (shape.length === 5 && a === anchors && d === values)
    return {
      anchors,
      rows: b,
      columns: c,
      anchorStep: b * c * values,
      rowStep: c * values,
      columnStep: values,
      valueStep: 1,
    }
  if (shape.length === 4 && a === anchors * values)
    return {
      anchors,
      rows: b,
      columns: c,
      anchorStep: b * c * values,
      rowStep: c,
      columnStep: 1,
      valueStep: b * c,
    }
  if (shape.length === 4 && c === anchors * values)
    return { anchors, rows: a, columns: b, anchorStep: values, rowStep: b * c, columnStep: c, valueStep: 1 }
  return undefined
}

/**
 * Cells as the last convolution gives them, one output for each stride: x, y, w, h, objectness and class scores before their
 * sigmoid, for each anchor.
 *
 * - `v5`: `xy = 2s - 0.5`, `wh = (2s)^2 * anchor`
 * - `v3`: `xy = s`, `wh = e^t * anchor`
 */
export class RawGridHead implements Head {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly layouts: readonly GridLayout[],
    readonly input: SizePx,
    readonly options: HeadOptions,
  ) {}

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    let anchor = 0
    this.layouts.forEach((layout, level) => {
      const values = outputs[level]!
      const perFrame = layout.anchors * layout.rows * layout.columns * (5 + this.classes)
      for (let a = 0; a < layout.anchors; a++, anchor++)
        this.#decodeAnchor(values, frame * perFrame + a * layout.anchorStep, layout, anchor, minScore, out)
    })
  }

  scoreBlocks(frame: number): readonly ScoreBlock[] {
    return this.layouts.flatMap((layout, output) => {
      const perFrame = layout.anchors * layout.rows * layout.columns * (5 + this.classes)
      const inRow = { output, rows: layout.columns, rowStep: layout.columnStep }
      const inCell = { columns: 1 + this.classes, columnStep: layout.valueStep }
      return Array.from({ length: layout.anchors * layout.rows }, (_, at): ScoreBlock => {
        const anchorAt = Math.floor(at / layout.rows) * layout.anchorStep
        const rowAt = (at % layout.rows) * layout.rowStep
        const start = frame * perFrame + anchorAt + rowAt + 4 * layout.valueStep
        return { ...inRow, ...inCell, start }
      })
    })
  }

  #decodeAnchor(
    values: Float32Array,
    start: number,
    layout: GridLayout,
    anchor: number,
    minScore: number,
    out: Candidates,
  ): void {
    for (let row = 0; row < layout.rows; row++) {
      for (let column = 0; column < layout.columns; column++) {
        const at = start + row * layout.rowStep + column * layout.columnStep
        this.#decodeCell(values, at, layout, row, column, anchor, minScore, out)
      }
    }
  }

  #decodeCell(
    values: Float32Array,
    at: number,
    layout: GridLayout,
    row: number,
    column: number,
    anchor: number,
    minScore: number,
    out: Candidates,
  ): void {
    const raw = (index: number) => values[at + index * layout.valueStep]!
    const active = this.options.activation === 'none' ? raw : (index: number) => sigmoid(raw(index))
    const objectness = active(4)
    if (!(objectness >= minScore)) return
    let best = 0
    for (let c = 1; c < this.classes; c++) if (raw(5 + c) > raw(5 + best)) best = c
    const score = this.classes === 0 ? objectness : objectness * active(5 + best)
    if (!(score >= minScore)) return
    const { decoding, anchors } = this.options
    const width = anchors[anchor * 2] ?? 1
    const height = anchors[anchor * 2 + 1] ?? 1
    const [x, y, w, h] =
      decoding === 'v5'
        ? [2 * active(0) - 0.5, 2 * active(1) - 0.5, (2 * active(2)) ** 2, (2 * active(3)) ** 2]
        : [active(0), active(1), Math.exp(raw(2)), Math.exp(raw(3))]
    const strideX = this.input.widthPx / layout.columns
    const strideY = this.input.heightPx / layout.rows
    out.pushCentre((x + column) * strideX, (y + row) * strideY, w * width, h * height, score, best)
  }
}
