import { type BatchLimits, decideBatch, isFull, type Waiting } from './batch-policy.js'
import { LatestSlots, type QueueItem } from './latest-slots.js'
import type { SchedulerClock } from './scheduler-clock.js'

/** Where batches run. It calls `pump` of the scheduler whenever a run could start again. */
export interface BatchRunner<T> {
  /** Runs that could start now. */
  readonly idle: number
  /** Takes the batch; uses up one idle place before it returns. */
  start(batch: readonly T[]): void
}

/** One that also takes a batch behind a run, for streams. */
export interface StreamRunner<T> extends BatchRunner<T> {
  /** Runs that could wait behind those that have begun; `start` uses them up when none is idle. */
  readonly ahead: number
}

/**
 * Streaming dynamic batching: keeps the newest item of each stream, and hands out batches to whatever is idle.
 *
 * Nothing queues behind a busy runner but one item per stream, and a full batch where the runner takes one ahead.
 */
export class StreamScheduler<T extends QueueItem> {
  readonly #slots = new LatestSlots<T>()
  readonly #streams = new Set<string>()
  #cancelTimer: (() => void) | undefined

  constructor(
    readonly limits: BatchLimits,
    readonly runner: StreamRunner<T>,
    readonly clock: SchedulerClock,
  ) {}

  get waiting(): number {
    return this.#slots.size
  }

  /** @returns the older item of the same stream that it superseded, which now belongs to the caller. */
  offer(item: T): T | undefined {
    this.#streams.add(item.streamId)
    const superseded = this.#slots.put(item)
    this.pump()
    return superseded
  }

  /** Forgets a stream. @returns its waiting item, which now belongs to the caller. */
  removeStream(streamId: string): T | undefined {
    this.#streams.delete(streamId)
    return this.#slots.remove(streamId)
  }

  /** Takes everything that waits, and starts nothing more until the next offer. */
  clear(): T[] {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    return this.#slots.take(this.#slots.size)
  }

  /** Starts what can be started. */
  pump(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    while (this.runner.idle > 0) {
      const decision = decideBatch(this.#whatWaits(), this.limits)
      if (decision.kind === 'idle') return
      if (decision.kind === 'wait') {
        this.#cancelTimer = this.clock.after(decision.forMs, () => this.pump())
        return
      }
      this.runner.start(this.#slots.take(decision.count))
    }
    while (this.runner.ahead > 0 && isFull(this.#whatWaits(), this.limits))
      this.runner.start(this.#slots.take(this.limits.maxBatchSize))
  }

  #whatWaits(): Waiting {
    const sinceMs = this.#slots.waitingSinceMs
    return {
      count: this.#slots.size,
      oldestMs: sinceMs === undefined ? 0 : this.clock.nowMs() - sinceMs,
      possible: this.#streams.size,
    }
  }
}
