import type { SizePx } from '../../vision/letterbox.js'
import { activated } from './activation.js'
import { pushBox } from './box-form.js'
import { type Candidates, classNumber } from './candidates.js'
import type { Head, HeadOptions, ScoreBlock } from './head.js'

/** Boxes, scores and labels side by side. Rows that are not used have score 0. */
export class BoxesHead implements Head {
  readonly needsNms = false

  /** @param boxes - in each picture. */
  constructor(
    readonly boxes: number,
    readonly input: SizePx,
    readonly options: HeadOptions,
  ) {}

  scoreBlocks(frame: number): readonly ScoreBlock[] {
    const { boxes } = this
    return [{ output: 1, start: frame * boxes, rows: boxes, rowStep: 1, columns: 1, columnStep: 1 }]
  }

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    const [boxes, scores, labels] = outputs
    if (boxes === undefined || scores === undefined || labels === undefined) return
    for (let at = frame * this.boxes; at < (frame + 1) * this.boxes; at++) {
      const score = activated(scores[at]!, this.options.activation)
      const classId = classNumber(labels[at]!)
      if (!(score >= minScore) || !(classId >= 0)) continue
      pushBox(out, boxes, at * 4, this.options, this.input, score, classId)
    }
  }
}
