import { activated, type Activation, bestClassAt, scoreInRow } from './activation.js'
import type { Candidates } from './candidates.js'
import type { OutputHead, ScoreBlock } from './head.js'

/** `[anchors, 5 + classes]`: cx, cy, w, h in input pixels, objectness, class scores. Score = objectness x class. */
export class YoloV5Head implements OutputHead {
  readonly needsNms = true

  constructor(
    readonly classes: number,
    readonly anchors: number,
    readonly activation: Activation = 'none',
  ) {}

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const width = 5 + this.classes
    const ofObject = ofObjectness(this.activation)
    const end = start + this.anchors * width
    for (let at = start; at < end; at += width) {
      const objectness = activated(output[at + 4]!, ofObject)
      // A class score is at most 1, so nothing is lost here, and nearly every anchor ends here.
      if (!(objectness >= minScore)) continue
      const classId = bestClassAt(output, at + 5, this.classes)
      const score = objectness * scoreInRow(output, at + 5, this.classes, classId, this.activation)
      if (score >= minScore)
        out.pushCentre(output[at]!, output[at + 1]!, output[at + 2]!, output[at + 3]!, score, classId)
    }
  }
  scoreBlocks(start: number): readonly ScoreBlock[] {
    return rowScores(start, this.anchors, this.classes)
  }
}

/** A softmax is of classes: beside it, objectness is a number of its own. */
export function ofObjectness(activation: Activation): Activation {
  return activation === 'softmax' ? 'sigmoid' : activation
}

/** Objectness and class scores of rows `[rows, 5 + classes]`. */
export function rowScores(start: number, rows: number, classes: number): readonly ScoreBlock[] {
  return [{ output: 0, start: start + 4, rows, rowStep: 5 + classes, columns: 1 + classes, columnStep: 1 }]
}
