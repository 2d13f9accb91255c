import type { SchedulerClock } from './scheduler-clock.js'
import type { BatchRunner } from './stream-scheduler.js'
import { type BatchDecision, type BatchRules, decideBatch } from './batch-decision.js'
import type { QueueRules } from './queue-rules.js'
import { type QueueEntry, RequestQueue } from './request-queue.js'

export type BatcherRules = Readonly<{
  queue: QueueRules
  /** `undefined`: every request runs alone. */
  batches: BatchRules | undefined
}>

/** Queues requests and hands them, in batches or alone, to whatever is idle. */
export class RequestBatcher<T extends QueueEntry> {
  readonly #queue: RequestQueue<T>
  #cancelTimer: (() => void) | undefined

  /** @param onTimeout - gets requests that have left the queue because they waited too long. */
  constructor(
    readonly rules: BatcherRules,
    readonly runner: BatchRunner<T>,
    readonly clock: SchedulerClock,
    readonly onTimeout: (entry: T) => void,
  ) {
    this.#queue = new RequestQueue(rules.queue)
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** @returns whether there was room in the queue. */
  offer(entry: T): boolean {
    const accepted = this.#queue.push(entry)
    if (accepted) this.pump()
    return accepted
  }

  /** @returns whether the request was still waiting. */
  cancel(entry: T): boolean {
    const removed = this.#queue.remove(entry)
    // The rest may be a batch that cannot grow now.
    if (removed) this.pump()
    return removed
  }

  /** Takes everything that waits. */
  clear(): T[] {
    this.#stopTimer()
    return this.#queue.take(this.#queue.size)
  }

  /** Starts what can be started. */
  pump(): void {
    this.#stopTimer()
    while (this.runner.idle > 0) {
      const nowMs = this.clock.nowMs()
      for (const entry of this.#queue.expire(nowMs)) this.onTimeout(entry)
      const decision = this.#decide(nowMs)
      if (decision.kind === 'idle') return
      if (decision.kind === 'wait') {
        this.#cancelTimer = this.clock.after(decision.forMs, () => this.pump())
        return
      }
      this.runner.start(this.#queue.take(decision.count))
    }
  }

  #decide(nowMs: number): BatchDecision {
    const oldestMs = this.#queue.oldestMs()
    if (oldestMs === undefined) return { kind: 'idle' }
    if (this.rules.batches === undefined) return { kind: 'run', count: 1 }
    return decideBatch(
      {
        candidates: this.#queue,
        oldestMs: nowMs - oldestMs,
        timeoutInMs: this.#queue.timeoutInMs(nowMs),
      },
      this.rules.batches,
    )
  }

  #stopTimer(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }
}
