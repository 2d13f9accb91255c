import type { SizePx } from '../../vision/letterbox.js'
import { activated, type Activation, bestClassAt, scoreInRow } from './activation.js'
import type { Candidates } from './candidates.js'
import { gridCells } from './grid.js'
import type { OutputHead, ScoreBlock } from './head.js'
import { ofObjectness, rowScores } from './yolov5.js'

/**
 * `[cells, 5 + classes]`: x and y as offsets from the cell, w and h as logarithms, both in cells; objectness and class scores.
 * Grids follow one another from the finest stride, rows first.
 */
export class YoloXHead implements OutputHead {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly input: SizePx,
    readonly strides: readonly number[],
    readonly activation: Activation = 'none',
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

  scoreBlocks(start: number): readonly ScoreBlock[] {
    return rowScores(start, gridCells(this.input, this.strides), this.classes)
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
    const ofObject = ofObjectness(this.activation)
    for (let row = 0, at = start; row < rows; row++) {
      for (let column = 0; column < columns; column++, at += width) {
        const objectness = activated(output[at + 4]!, ofObject)
        if (!(objectness >= minScore)) continue
        const classId = bestClassAt(output, at + 5, this.classes)
        const score = objectness * scoreInRow(output, at + 5, this.classes, classId, this.activation)
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
