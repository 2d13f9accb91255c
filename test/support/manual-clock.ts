import type { SchedulerClock } from '../../src/inference/stream-scheduler.js'

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

  /** Calls what is due, in order, each at its time. */
  advance(forMs: number): void {
    const untilMs = this.#nowMs + forMs
    for (;;) {
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
