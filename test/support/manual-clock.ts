import type { SchedulerClock } from '../../src/runtime/scheduler-clock.js'

/** More timers than any test has within one step of time. */
const mostCalls = 10_000

/** Time that passes only when it is told to. */
export class ManualClock implements SchedulerClock {
  #nowMs = 0
  readonly #timers = new Set<{ atMs: number; call: () => void }>()

  nowMs(): number {
    return this.#nowMs
  }

  after(forMs: number, call: () => void): () => void {
    const timer = { atMs: this.#nowMs + forMs, call }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /**
   * Calls what is due, in order, each at its time.
   *
   * @throws when timers that are due at once set others without an end
   */
  advance(forMs: number): void {
    const untilMs = this.#nowMs + forMs
    for (let calls = 0; ; calls++) {
      if (calls === mostCalls) throw new Error(`timers do not come to an end: ${mostCalls} calls`)
      const due = [...this.#timers]
        .filter((timer) => timer.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.#nowMs = Math.max(this.#nowMs, due.atMs)
      due.call()
    }
    this.#nowMs = untilMs
  }
}
