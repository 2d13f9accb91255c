import type { SchedulerClock } from './stream-scheduler.js'
import { nowMs } from '../lifecycle/clock.js'

/** The system's clock. Its timers keep no process alive. */
export const timers: SchedulerClock = {
  nowMs,
  after(forMs, call) {
    const timer = setTimeout(call, forMs).unref()
    return () => clearTimeout(timer)
  },
}
