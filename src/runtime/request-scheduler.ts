import { StreamOrder } from './stream-order.js'
import type { SchedulerClock } from './scheduler-clock.js'
import type { BatchRunner } from './stream-scheduler.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import type { ModelInstances } from './instance-group.js'
import type { PendingRequest } from './pending-request.js'
import { type BatcherRules, RequestBatcher } from './request-batcher.js'
import { backendError, type RequestOutcome } from './request-outcome.js'
import type { Scheduler } from './scheduler.js'

export type RequestSchedulerRules = BatcherRules &
  Readonly<{
    /** Answers leave in the order in which their requests left the queue. */
    preserveOrdering: boolean
  }>

/** Requests that know nothing of each other: alone, or batched as they come. */
export class RequestScheduler implements Scheduler, BatchRunner<PendingRequest> {
  readonly #batcher: RequestBatcher<PendingRequest>
  readonly #order = new StreamOrder()

  constructor(
    readonly rules: RequestSchedulerRules,
    readonly instances: ModelInstances,
    readonly outcome: RequestOutcome,
    readonly statistics: StatisticsRecorder,
    readonly clock: SchedulerClock,
  ) {
    this.#batcher = new RequestBatcher(rules, this, clock, (pending) => this.#timedOut(pending))
  }

  get waiting(): number {
    return this.#batcher.waiting
  }

  get idle(): number {
    // A batch that is handed over ahead of time can no longer grow.
    return this.instances.idle + (this.rules.batches === undefined ? this.instances.ahead : 0)
  }

  offer(pending: PendingRequest): void {
    this.statistics.pending += 1
    if (this.#batcher.offer(pending)) {
      // Most have started by now.
      pending.watch(() => this.#cancel(pending))
      return
    }
    this.#leave(pending)
    this.outcome.queueFull(pending)
  }

  pump(): void {
    this.#batcher.pump()
  }

  start(batch: readonly PendingRequest[]): void {
    void this.#run(batch)
  }

  clear(): readonly PendingRequest[] {
    const left = this.#batcher.clear()
    for (const pending of left) this.#leave(pending)
    return left
  }

  async #run(batch: readonly PendingRequest[]): Promise<void> {
    const places = batch.map(() => (this.rules.preserveOrdering ? this.#order.enter('') : atOnce))
    let started = false
    const start = () => {
      started = true
      const startedMs = this.clock.nowMs()
      for (const pending of batch) {
        pending.startedMs = startedMs
        this.#leave(pending)
      }
    }
    try {
      const executions = batch.map((pending) => pending.execution())
      const result = await this.instances.run(executions, undefined, start)
      const items = batch.reduce((sum, pending) => sum + pending.batchSize, 0)
      this.statistics.recordExecution(items, result.times)
      batch.forEach((pending, index) => places[index]!(() => this.outcome.settle(pending, result, index)))
    } catch (error) {
      if (!started) start()
      const failure = backendError(error)
      batch.forEach((pending, index) => places[index]!(() => this.outcome.fail(pending, failure)))
    }
  }

  #cancel(pending: PendingRequest): void {
    if (!this.#batcher.cancel(pending)) return
    this.#leave(pending)
    this.outcome.cancelled(pending)
  }

  #timedOut(pending: PendingRequest): void {
    this.#leave(pending)
    this.outcome.timedOut(pending)
  }

  #leave(pending: PendingRequest): void {
    this.statistics.pending -= 1
    pending.unwatch()
  }
}

function atOnce(settle: () => void): void {
  settle()
}
