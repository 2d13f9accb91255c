import { nowMs } from '../lifecycle/clock.js'

/** Time and timers, passed in. */
export interface SchedulerClock {
  nowMs(): number
  /** @returns cancels the timer. */
  after(forMs: number, call: () => void): () => void
}

/** Longest time of a timer, 24 days. A longer one would fire at once. */
export const mostTimerMs = 2 ** 31 - 1

/** The system's clock. Its timers keep no process alive. */
export const timers: SchedulerClock = {
  nowMs,
  after(forMs, call) {
    const timer = setTimeout(call, forMs).unref()
    return () => clearTimeout(timer)
  },
}
