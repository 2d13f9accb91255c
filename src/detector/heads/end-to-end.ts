import { activated, type Activation } from './activation.js'
import { type Candidates, classNumber } from './candidates.js'
import type { OutputHead, ScoreBlock } from './head.js'

const width = 6

/** `[boxes, 6]`: x1, y1, x2, y2 in input pixels, score, class. Unused rows have score 0. */
export class EndToEndHead implements OutputHead {
  readonly needsNms = false

  constructor(
    readonly boxes: number,
    readonly activation: Activation = 'none',
  ) {}

  scoreBlocks(start: number): readonly ScoreBlock[] {
    return [{ output: 0, start: start + 4, rows: this.boxes, rowStep: width, columns: 1, columnStep: 1 }]
  }

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const end = start + this.boxes * width
    for (let at = start; at < end; at += width) {
      const score = activated(output[at + 4]!, this.activation)
      const classId = classNumber(output[at + 5]!)
      if (!(score >= minScore) || !(classId >= 0)) continue
      out.pushCorners(output[at]!, output[at + 1]!, output[at + 2]!, output[at + 3]!, score, classId)
    }
  }
}
