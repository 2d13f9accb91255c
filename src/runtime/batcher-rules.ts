import type { ModelConfig } from '../repository/model-config.js'
import type { BatchRules } from './batch-decision.js'
import { plainQueue, queueRules } from './queue-rules.js'
import type { RequestSchedulerRules } from './request-scheduler.js'

/** How the requests of a model are queued and batched; without `dynamic_batching`, alone and in order. */
export function batcherRules(config: ModelConfig): RequestSchedulerRules {
  const batching = config.dynamic_batching
  if (batching === undefined) return { queue: plainQueue, batches: undefined, preserveOrdering: false }
  return {
    queue: queueRules(batching),
    batches: batchRules(
      config.max_batch_size ?? 0,
      batching.preferred_batch_size,
      batching.max_queue_delay_microseconds,
    ),
    preserveOrdering: batching.preserve_ordering === true,
  }
}

/**
 * Without preferred sizes, the largest is preferred. `undefined` for models that take no batches.
 *
 * @param preferred - 1 to `maxBatchSize`.
 */
export function batchRules(
  maxBatchSize: number,
  preferred: readonly number[],
  maxDelayUs = 0,
): BatchRules | undefined {
  if (maxBatchSize <= 0) return undefined
  return {
    maxBatchSize,
    preferredSizes: preferred.length === 0 ? [maxBatchSize] : preferred.toSorted((a, b) => a - b),
    maxDelayMs: maxDelayUs / 1e3,
  }
}
