/** Lets at most `perSecond` lines pass in each second of monotonic time and counts the rest. */
export class LogLimiter {
  #windowMs = -Infinity
  #passed = 0
  #suppressed = 0

  constructor(readonly perSecond: number) {}

  allows(nowMs: number): boolean {
    if (nowMs - this.#windowMs >= 1_000) {
      this.#windowMs = nowMs
      this.#passed = 0
    }
    this.#passed += 1
    if (this.#passed <= this.perSecond) return true
    this.#suppressed += 1
    return false
  }

  /** Lines held back since the last call. */
  takeSuppressed(): number {
    const suppressed = this.#suppressed
    this.#suppressed = 0
    return suppressed
  }
}
