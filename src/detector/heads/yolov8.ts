import type { Candidates } from './candidates.js'
import { type Activation, leastBefore, scoreInRow } from './activation.js'
import type { OutputHead, ScoreBlock } from './head.js'

/** `[4 + classes, anchors]`: rows cx, cy, w, h in input pixels, then a row of scores per class. */
export class YoloV8Head implements OutputHead {
  readonly needsNms = true
  readonly #best: Float32Array
  readonly #bestClass: Int16Array

  constructor(
    readonly classes: number,
    readonly anchors: number,
    readonly activation: Activation = 'none',
  ) {
    this.#best = new Float32Array(anchors)
    this.#bestClass = new Int16Array(anchors)
  }

  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void {
    const { anchors, classes, activation } = this
    const scoresAt = start + 4 * anchors
    const hits = this.#scan(output, scoresAt, leastBefore(minScore, activation))
    if (hits === 0) return
    for (let a = 0; a < anchors; a++) {
      const classId = this.#bestClass[a]!
      if (classId < 0) continue
      const at = start + a
      const score = scoreInRow(output, scoresAt + a, classes, classId, activation, anchors)
      if (!(score >= minScore)) continue
      out.pushCentre(
        output[at]!,
        output[at + anchors]!,
        output[at + 2 * anchors]!,
        output[at + 3 * anchors]!,
        score,
        classId,
      )
    }
  }

  scoreBlocks(start: number): readonly ScoreBlock[] {
    const { anchors, classes } = this
    const block = { output: 0, start: start + 4 * anchors, rows: classes, rowStep: anchors }
    return [{ ...block, columns: anchors, columnStep: 1 }]
  }

  /**
   * Finds the best class of each anchor. Scores lie row by row and hardly any reaches the threshold, so four are looked at together:
   * 28 against 57 µs for 7 classes of 7,350 anchors.
   */
  #scan(output: Float32Array, scoresAt: number, minScore: number): number {
    const { classes, anchors } = this
    this.#bestClass.fill(-1)
    let hits = 0
    for (let c = 0; c < classes; c++) {
      const row = scoresAt + c * anchors
      let a = 0
      for (; a + 4 <= anchors; a += 4) {
        const at = row + a
        if (
          output[at]! >= minScore ||
          output[at + 1]! >= minScore ||
          output[at + 2]! >= minScore ||
          output[at + 3]! >= minScore
        )
          hits += this.#take(output, row, a, a + 4, c, minScore)
      }
      hits += this.#take(output, row, a, anchors, c, minScore)
    }
    return hits
  }

  /** Class `c` of the anchors `from` to `to`. @returns how many it is the best of, so far. */
  #take(output: Float32Array, row: number, from: number, to: number, c: number, minScore: number): number {
    const best = this.#best
    const bestClass = this.#bestClass
    let hits = 0
    for (let a = from; a < to; a++) {
      const score = output[row + a]!
      if (score >= minScore && (bestClass[a]! < 0 || score > best[a]!)) {
        best[a] = score
        bestClass[a] = c
        hits += 1
      }
    }
    return hits
  }
}
