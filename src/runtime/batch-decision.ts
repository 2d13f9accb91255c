/** How batches are formed. */
export type BatchRules = Readonly<{
  /** Most items in one run, at least 1. */
  maxBatchSize: number
  /** Sizes worth running at once, ascending, at least one, none over the limit. */
  preferredSizes: readonly number[]
  /** Longest the oldest request waits for company while an instance is idle. */
  maxDelayMs: number
}>

export type Candidate = Readonly<{
  /** Items of the request, from 1 to the limit. */
  batchSize: number
  /** Requests share a run only if this is the same: shapes of their items, and which optional inputs they have. */
  shapeKey: string
}>

/** What waits while an instance is idle. */
export type Waiting = Readonly<{
  /** In the order in which they run. */
  candidates: Iterable<Candidate>
  /** How long the one that came first has waited. */
  oldestMs: number
  /** Until the first time-out in the queue; `undefined` without one. */
  timeoutInMs: number | undefined
}>

export type BatchDecision =
  | Readonly<{ kind: 'idle' }>
  | Readonly<{ kind: 'wait'; forMs: number }>
  /** `count` requests from the front. */
  | Readonly<{ kind: 'run'; count: number }>

/**
 * Chooses what an idle instance does next, with no clock and no timer.
 *
 * The largest preferred size that can be reached wins while the delay has not passed. A batch that cannot grow runs at once: it is
 * full, or the next request has another shape or is too large for it.
 *
 * @see triton-inference-server/core, src/dynamic_batch_scheduler.cc, GetDynamicBatch
 */
export function decideBatch(waiting: Waiting, rules: BatchRules): BatchDecision {
  const { pending, best, closed } = gather(waiting.candidates, rules)
  if (pending.count === 0) return { kind: 'idle' }
  const delayed = rules.maxDelayMs > 0 && waiting.oldestMs >= rules.maxDelayMs
  if (best !== undefined && !delayed) return { kind: 'run', count: best.count }
  const largestPreferred = rules.preferredSizes.at(-1) ?? rules.maxBatchSize
  if (closed || delayed || rules.maxDelayMs === 0 || pending.items >= largestPreferred)
    return { kind: 'run', count: pending.count }
  const leftMs = rules.maxDelayMs - waiting.oldestMs
  return { kind: 'wait', forMs: Math.max(0, Math.min(leftMs, waiting.timeoutInMs ?? leftMs)) }
}

type Gathered = Readonly<{ count: number; items: number }>

/** All that fit into one batch, and the largest preferred batch among their beginnings. */
function gather(
  candidates: Iterable<Candidate>,
  { maxBatchSize, preferredSizes }: BatchRules,
): { pending: Gathered; best: Gathered | undefined; closed: boolean } {
  const largestPreferred = preferredSizes.at(-1) ?? maxBatchSize
  let pending: Gathered = { count: 0, items: 0 }
  let best: Gathered | undefined
  let shapeKey: string | undefined
  for (const candidate of candidates) {
    const items = pending.items + candidate.batchSize
    if (pending.count > 0) {
      if (items > largestPreferred) best ??= pending
      if (items > maxBatchSize || candidate.shapeKey !== shapeKey) return { pending, best, closed: true }
    }
    shapeKey ??= candidate.shapeKey
    pending = { count: pending.count + 1, items }
    if (preferredSizes.includes(items)) best = pending
  }
  return { pending, best, closed: false }
}
