import type { SizePx } from '../../vision/letterbox.js'
import { pushBox } from './box-form.js'
import { type Candidates, classNumber } from './candidates.js'
import type { Head, HeadOptions } from './head.js'

/** Boxes, scores and labels side by side. Rows that are not used have score 0. */
export class BoxesHead implements Head {
  readonly needsNms = false

  /** @param boxes - in each picture. */
  constructor(
    readonly boxes: number,
    readonly input: SizePx,
    readonly options: HeadOptions,
  ) {}

  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    const [boxes, scores, labels] = outputs
    if (boxes === undefined || scores === undefined || labels === undefined) return
    for (let at = frame * this.boxes; at < (frame + 1) * this.boxes; at++) {
      const score = scores[at]!
      const classId = classNumber(labels[at]!)
      if (!(score >= minScore) || !(classId >= 0)) continue
      pushBox(out, boxes, at * 4, this.options, this.input, score, classId)
    }
  }
}
