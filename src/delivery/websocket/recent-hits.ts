/** Counts what happened in the last `windowMs`. */
export class RecentHits {
  #times: number[] = []

  constructor(readonly windowMs: number) {}

  /** @returns how often it happened within the window, this time included. */
  hit(atMs: number): number {
    this.#times = this.#times.filter((time) => atMs - time < this.windowMs)
    this.#times.push(atMs)
    return this.#times.length
  }
}
