/** Decides when failures in a row mean that the far side is gone and not just late once. Opens for good; a new link has a new streak. */
export class FailureStreak {
  #count = 0
  #sinceMs = 0

  constructor(readonly limits: Readonly<{ maxFailures: number; maxMs: number }>) {}

  succeeded(): void {
    this.#count = 0
  }

  /** @returns whether it is time to give up. */
  failed(atMs: number): boolean {
    if (this.#count === 0) this.#sinceMs = atMs
    this.#count += 1
    return this.#count >= this.limits.maxFailures || atMs - this.#sinceMs >= this.limits.maxMs
  }
}
