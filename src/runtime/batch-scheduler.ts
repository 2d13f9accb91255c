import type { Policy } from './policies/policy.js'
import type { SchedulerClock } from './scheduler-clock.js'

/** Where batches run. It calls `pump` of the scheduler whenever a run could start again. */
export interface BatchRunner<T> {
  /** Runs that could start now. */
  readonly idle: number
  /** Runs that could wait behind those that have begun; `start` uses them up when none is idle. */
  readonly ahead: number
  /** Takes the batch; uses up one place before it returns. */
  start(batch: readonly T[]): void
}

/** Hands what waits, in batches as its policy forms them, to whatever is idle. */
export class BatchScheduler<T> {
  #cancelTimer: (() => void) | undefined

  constructor(
    readonly policy: Policy<T>,
    readonly runner: BatchRunner<T>,
    readonly clock: SchedulerClock,
  ) {}

  /** Takes everything that waits, and starts nothing more until the next {@link pump}. */
  clear(): T[] {
    this.#stopTimer()
    return this.policy.take(this.policy.waiting)
  }

  /** Starts what can be started. To be called when something has come, or gone that others waited for. */
  pump(): void {
    this.#stopTimer()
    const { policy, runner, clock } = this
    while (runner.idle > 0) {
      const decision = policy.decide(clock.nowMs())
      if (decision.kind === 'idle') return
      if (decision.kind === 'wait') {
        this.#cancelTimer = clock.after(decision.forMs, () => this.pump())
        return
      }
      runner.start(policy.take(decision.count))
    }
    while (runner.ahead > 0) {
      const count = policy.ahead(clock.nowMs())
      if (count === 0) return
      runner.start(policy.take(count))
    }
  }

  #stopTimer(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }
}
