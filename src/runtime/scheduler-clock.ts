import { nowMs } from '../lifecycle/clock.js'

/** Time and timers, passed in. */
export interface SchedulerClock {
  nowMs(): number
  /** @returns cancels the timer. */
  after(forMs: number, call: () => void): () => void
}

/** The system's clock. Its timers keep no process alive. */
export const timers: SchedulerClock = {
  nowMs,
  after(forMs, call) {
    const timer = setTimeout(call, forMs).unref()
    return () => clearTimeout(timer)
  },
}
