import { bestClassAt } from './activation.js'
import type { Candidates } from './candidates.js'
import type { OutputHead } from './head.js'

/** `[anchors, 5 + classes]`: cx, cy, w, h in input pixels, objectness, class scores; all 0..1. Score = objectness x class. */
export class YoloV5Head implements OutputHead {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly anchors: number,
  ) {}

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const width = 5 + this.classes
    const end = start + this.anchors * width
    for (let at = start; at < end; at += width) {
      const objectness = output[at + 4]!
      // A class score is at most 1, so nothing is lost here, and nearly every anchor ends here.
      if (!(objectness >= minScore)) continue
      const classId = bestClassAt(output, at + 5, this.classes)
      const score = objectness * output[at + 5 + classId]!
      if (score >= minScore)
        out.pushCentre(output[at]!, output[at + 1]!, output[at + 2]!, output[at + 3]!, score, classId)
    }
  }
}
