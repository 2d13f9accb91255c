export type GrowingTriesOptions = Readonly<{
  /** Until the first try; the next waits are {@link growingWaitMs}. */
  firstMs: number
  /** Whether there is something to try. */
  isNeeded: () => boolean
  /** Never rejects. */
  attempt: () => Promise<void>
}>

const mostTimesFirst = 30

/** Until the next try, after so many: each wait is twice the one before, up to thirty times the first. */
export function growingWaitMs(firstMs: number, tries: number): number {
  return firstMs * Math.min(mostTimesFirst, 2 ** tries)
}

/** Tries something again now and then, ever more rarely, for as long as it is needed. One try at a time. */
export class GrowingTries {
  #timer: NodeJS.Timeout | undefined
  #isTrying = false
  #tries = 0
  #stopped = false

  constructor(readonly options: GrowingTriesOptions) {}

  /** To be called whenever it may be needed, or needed no more; cheap. */
  look(): void {
    if (this.#stopped || this.#isTrying || this.#timer !== undefined) return
    const { firstMs, isNeeded } = this.options
    if (!isNeeded()) {
      this.#tries = 0
      return
    }
    this.#timer = setTimeout(() => void this.#try(), growingWaitMs(firstMs, this.#tries))
  }

  /** No try begins any more; one that has begun goes on. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #try(): Promise<void> {
    this.#timer = undefined
    if (!this.options.isNeeded()) return
    this.#tries += 1
    this.#isTrying = true
    await this.options.attempt()
    this.#isTrying = false
    this.look()
  }
}
