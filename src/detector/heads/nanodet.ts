import type { SizePx } from '../../vision/letterbox.js'
import { bestClassAt, softmaxMean } from './activation.js'
import type { Candidates } from './candidates.js'
import type { Head, HeadOptions } from './head.js'

/**
 * Class scores 0..1 and, for each side of the box, a distribution over distances from the cell's point, in cells.
 *
 * One output has them beside each other in each row, all strides in turn; otherwise each stride has an output of scores and one of
 * distances.
 */
export class NanodetHead implements Head {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly strides: readonly number[],
    readonly input: SizePx,
    readonly options: HeadOptions,
  ) {}

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    const bins = 4 * (this.options.regMax + 1)
    const together = outputs.length === 1
    const width = this.classes + bins
    const all = this.strides.reduce((sum, stride) => sum + cellsOf(this.input, stride), 0)
    let row = together ? frame * all : 0
    this.strides.forEach((stride, level) => {
      const cells = cellsOf(this.input, stride)
      const scores = outputs[together ? 0 : level * 2]!
      const distances = outputs[together ? 0 : level * 2 + 1]!
      const first = together ? row : frame * cells
      const columns = Math.ceil(this.input.widthPx / stride)
      for (let cell = 0; cell < cells; cell++) {
        const scoreAt = (first + cell) * (together ? width : this.classes)
        const classId = bestClassAt(scores, scoreAt, this.classes)
        const score = scores[scoreAt + classId]!
        if (!(score >= minScore)) continue
        const distanceAt = together ? scoreAt + this.classes : (first + cell) * bins
        this.#push(
          out,
          distances,
          distanceAt,
          cell % columns,
          Math.floor(cell / columns),
          stride,
          score,
          classId,
        )
      }
      row += cells
    })
  }

  #push(
    out: Candidates,
    distances: Float32Array,
    at: number,
    column: number,
    row: number,
    stride: number,
    score: number,
    classId: number,
  ): void {
    const bins = this.options.regMax + 1
    const x = (column + this.options.offset) * stride
    const y = (row + this.options.offset) * stride
    const [left, top, right, bottom] = [0, 1, 2, 3].map(
      (side) => softmaxMean(distances, at + side * bins, bins) * stride,
    ) as [number, number, number, number]
    out.pushCorners(x - left, y - top, x + right, y + bottom, score, classId)
  }
}

/** NanoDet rounds the last, partial cells up. */
export function cellsOf(input: SizePx, stride: number): number {
  return Math.ceil(input.widthPx / stride) * Math.ceil(input.heightPx / stride)
}
