/** Runs whose median is taken: the last of their size. */
const kept = 31
/** The first median is taken of so many runs, and anew after so many. */
const runsOf = { first: 8, next: 16 } as const
/** So many times the median are slow. */
const slowFactor = 10
/** What is over sooner harms nobody: a thread may wait as long for a core. */
const leastSlowMs = 5

/** For all of them: a median is taken in one go. */
const sorted = new Float64Array(kept)

/** What runs of a size take: the median of the last ones, for the price of a store for most runs. Nothing is allocated for a run. */
export class UsualTime {
  /** A ring; `Infinity` where there was no run yet. */
  readonly #last = new Float64Array(kept).fill(Infinity)
  #runs = 0
  /** `Infinity` until there were enough. */
  medianMs = Infinity

  /** Counts a run. @returns whether it was slow beside those before it. */
  add(ms: number): boolean {
    const isSlow = ms >= leastSlowMs && ms > this.medianMs * slowFactor
    this.#last[this.#runs % kept] = ms
    this.#runs += 1
    if (this.#runs === runsOf.first || this.#runs % runsOf.next === 0) {
      sorted.set(this.#last)
      sorted.sort()
      this.medianMs = sorted[(Math.min(this.#runs, kept) - 1) >> 1]!
    }
    return isSlow
  }
}
