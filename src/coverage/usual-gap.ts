/** Gaps that the usual one is of. Few, so that a camera that changes its rhythm is known soon. */
const keptGaps = 15

/** The time between two pictures of a camera, as it usually is: the median, which a pause does not change. */
export class UsualGap {
  readonly #gapsMs: number[] = []
  #ms: number | undefined

  /** Milliseconds; 0 while fewer than three are known. */
  get ms(): number {
    return (this.#ms ??= this.#median())
  }

  add(gapMs: number): void {
    this.#gapsMs.push(gapMs)
    if (this.#gapsMs.length > keptGaps) this.#gapsMs.shift()
    this.#ms = undefined
  }

  #median(): number {
    if (this.#gapsMs.length < 3) return 0
    const sorted = [...this.#gapsMs].sort((one, other) => one - other)
    return sorted[sorted.length >> 1] ?? 0
  }
}
