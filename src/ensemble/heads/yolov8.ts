import type { Candidates } from './candidates.js'
import type { OutputHead } from './head.js'

/** `[4 + classes, anchors]`: rows cx, cy, w, h in input pixels, then a row of scores (0..1) per class. */
export class YoloV8Head implements OutputHead {
  readonly needsNms = true
  readonly #best: Float32Array
  readonly #bestClass: Int16Array

  constructor(
    readonly classes: number,
    readonly anchors: number,
  ) {
    this.#best = new Float32Array(anchors)
    this.#bestClass = new Int16Array(anchors)
  }

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const hits = this.#scan(output, start + 4 * this.anchors, minScore)
    if (hits === 0) return
    const { anchors } = this
    for (let a = 0; a < anchors; a++) {
      const classId = this.#bestClass[a]!
      if (classId < 0) continue
      const at = start + a
      out.pushCentre(
        output[at]!,
        output[at + anchors]!,
        output[at + 2 * anchors]!,
        output[at + 3 * anchors]!,
        this.#best[a]!,
        classId,
      )
    }
  }

  /**
   * Finds the best class of each anchor. Scores lie row by row and hardly any reaches the threshold, so the inner loop is one
   * comparison on consecutive floats.
   */
  #scan(output: Float32Array, scoresAt: number, minScore: number): number {
    const { classes, anchors } = this
    const best = this.#best
    const bestClass = this.#bestClass
    bestClass.fill(-1)
    let hits = 0
    for (let c = 0; c < classes; c++) {
      const row = scoresAt + c * anchors
      for (let a = 0; a < anchors; a++) {
        const score = output[row + a]!
        if (score >= minScore && (bestClass[a]! < 0 || score > best[a]!)) {
          best[a] = score
          bestClass[a] = c
          hits += 1
        }
      }
    }
    return hits
  }
}
