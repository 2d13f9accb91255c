/** How runs are formed. */
export type BatchLimits = Readonly<{
  /** Most items in one run. */
  maxBatchSize: number
  /** Longest an item waits for company while an instance is idle. */
  maxQueueDelayMs: number
}>

/** What waits for an instance. */
export type Waiting = Readonly<{
  count: number
  /** How long the oldest has waited. */
  oldestMs: number
  /** Most that could ever wait at once; one per stream. */
  possible: number
}>

export type BatchDecision =
  { kind: 'idle' } | { kind: 'wait'; forMs: number } | { kind: 'run'; count: number }

/**
 * Chooses what an idle instance does next, with no clock and no timer; the scheduler owns those.
 *
 * Waiting pays only while more can come: a full batch, or one item of every stream, runs at once.
 */
export function decideBatch(waiting: Waiting, limits: BatchLimits): BatchDecision {
  if (waiting.count === 0) return { kind: 'idle' }
  if (isFull(waiting, limits)) return { kind: 'run', count: Math.min(waiting.count, limits.maxBatchSize) }
  const leftMs = limits.maxQueueDelayMs - waiting.oldestMs
  return leftMs > 0 ? { kind: 'wait', forMs: leftMs } : { kind: 'run', count: waiting.count }
}

/** Whether waiting for more would not make the next batch larger. */
export function isFull({ count, possible }: Waiting, { maxBatchSize }: BatchLimits): boolean {
  return count >= Math.min(maxBatchSize, Math.max(1, possible))
}
