import type { Gap } from './record.js'

/** What is left to tell of the gaps of the file, which has them until the records that tell them are committed. */
export class UntoldGaps {
  /** Records that are told of and not committed, by sink, camera and reason. */
  readonly #underWay = new Map<string, number>()

  /** @param gaps - all that the file has. @returns what nobody was told of yet; it counts as told from here on. */
  ofAll(gaps: readonly Gap[]): readonly Gap[] {
    return gaps.flatMap((gap) => {
      const told = this.#underWay.get(keyOf(gap)) ?? 0
      if (gap.dropped <= told) return []
      this.#underWay.set(keyOf(gap), gap.dropped)
      return [{ ...gap, dropped: gap.dropped - told }]
    })
  }

  /** The record that tells it is committed, or lost. */
  over(gap: Gap | undefined): void {
    if (gap === undefined) return
    const left = (this.#underWay.get(keyOf(gap)) ?? 0) - gap.dropped
    if (left > 0) this.#underWay.set(keyOf(gap), left)
    else this.#underWay.delete(keyOf(gap))
  }
}

function keyOf({ sink, cameraId, reason }: Gap): string {
  return `${sink} ${cameraId} ${reason}`
}
