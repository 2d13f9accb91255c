import { StreamOrder } from './stream-order.js'
import type { SchedulerClock } from './scheduler-clock.js'
import type { ModelConfig } from '../repository/model-config.js'
import { type BatchRunner, BatchScheduler } from './batch-scheduler.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import type { ModelInstances } from './instance-group.js'
import type { PendingRequest } from './pending-request.js'
import type { SizeCost } from './batch-sizes.js'
import { batchRules, Dynamic, type DynamicRules } from './policies/dynamic.js'
import { plainQueue, queueRules } from './policies/queue-rules.js'
import { backendError, type RequestOutcome } from './request-outcome.js'
import type { Scheduler } from './scheduled-model.js'

export type RequestSchedulerRules = DynamicRules &
  Readonly<{
    /** Answers leave in the order in which their requests left the queue. */
    preserveOrdering: boolean
  }>

/**
 * How the requests of a model are queued and batched; without `dynamic_batching`, alone and in order.
 *
 * @param costs - of runs, where batches are filled up to certain sizes.
 */
export function requestSchedulerRules(
  config: ModelConfig,
  costs?: readonly SizeCost[],
): RequestSchedulerRules {
  const batching = config.dynamic_batching
  if (batching === undefined) return { queue: plainQueue, batches: undefined, preserveOrdering: false }
  return {
    queue: queueRules(batching),
    batches: batchRules(
      config.max_batch_size ?? 0,
      batching.preferred_batch_size,
      batching.max_queue_delay_microseconds,
      costs,
    ),
    preserveOrdering: batching.preserve_ordering === true,
  }
}

/** Requests that know nothing of each other: alone, or batched as they come. */
export class RequestScheduler implements Scheduler, BatchRunner<PendingRequest> {
  readonly #queue: Dynamic<PendingRequest>
  readonly #scheduler: BatchScheduler<PendingRequest>
  readonly #order = new StreamOrder()

  constructor(
    readonly rules: RequestSchedulerRules,
    readonly instances: ModelInstances,
    readonly outcome: RequestOutcome,
    readonly statistics: StatisticsRecorder,
    readonly clock: SchedulerClock,
  ) {
    this.#queue = new Dynamic(rules, (pending) => this.#timedOut(pending))
    this.#scheduler = new BatchScheduler(this.#queue, this, clock)
  }

  get waiting(): number {
    return this.#queue.waiting
  }

  get idle(): number {
    return this.instances.idle
  }

  get ahead(): number {
    return this.instances.ahead
  }

  offer(pending: PendingRequest): void {
    this.statistics.pending += 1
    if (this.#queue.put(pending)) {
      this.#scheduler.pump()
      // Most have started by now.
      pending.watch(() => this.#cancel(pending))
      return
    }
    this.#leave(pending)
    this.outcome.queueFull(pending)
  }

  pump(): void {
    this.#scheduler.pump()
  }

  start(batch: readonly PendingRequest[]): void {
    void this.#run(batch)
  }

  /** Other sizes of batches are warm. */
  useBatches(batches: RequestSchedulerRules['batches']): void {
    this.#queue.batches = batches
    this.#scheduler.pump()
  }

  clear(): readonly PendingRequest[] {
    const left = this.#scheduler.clear()
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
    if (!this.#queue.remove(pending)) return
    // The rest may be a batch that cannot grow now.
    this.#scheduler.pump()
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
