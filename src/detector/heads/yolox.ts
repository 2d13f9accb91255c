import type { SizePx } from '../../vision/letterbox.js'
import { bestClassAt } from './activation.js'
import type { Candidates } from './candidates.js'
import type { OutputHead } from './head.js'

/**
 * `[cells, 5 + classes]`: x and y as offsets from the cell, w and h as logarithms, both in cells; objectness and class scores
 * 0..1. Grids follow one another from the finest stride, rows first.
 */
export class YoloXHead implements OutputHead {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly input: SizePx,
    readonly strides: readonly number[],
  ) {}

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    let at = start
    for (const stride of this.strides) {
      const columns = Math.floor(this.input.widthPx / stride)
      const rows = Math.floor(this.input.heightPx / stride)
      this.#decodeGrid(output, at, columns, rows, stride, minScore, out)
      at += columns * rows * (5 + this.classes)
    }
  }

  #decodeGrid(
    output: Float32Array,
    start: number,
    columns: number,
    rows: number,
    stride: number,
    minScore: number,
    out: Candidates,
  ): void {
    const width = 5 + this.classes
    for (let row = 0, at = start; row < rows; row++) {
      for (let column = 0; column < columns; column++, at += width) {
        const objectness = output[at + 4]!
        if (!(objectness >= minScore)) continue
        const classId = bestClassAt(output, at + 5, this.classes)
        const score = objectness * output[at + 5 + classId]!
        if (!(score >= minScore)) continue
        out.pushCentre(
          (output[at]! + column) * stride,
          (output[at + 1]! + row) * stride,
          Math.exp(output[at + 2]!) * stride,
          Math.exp(output[at + 3]!) * stride,
          score,
          classId,
        )
      }
    }
  }
}
