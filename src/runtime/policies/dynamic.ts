import { RunChoice, type SizeCost } from '../batch-sizes.js'
import type { BatchDecision, Policy } from './policy.js'
import type { QueueRules } from './queue-rules.js'
import { type Candidate, type QueueEntry, RequestQueue } from './request-queue.js'

export type DynamicRules = Readonly<{
  queue: QueueRules
  /** `undefined`: every request runs alone. */
  batches: BatchRules | undefined
}>

/** Requests that know nothing of each other: batched as they come, by level and arrival, or alone. */
export class Dynamic<T extends QueueEntry> implements Policy<T> {
  readonly #queue: RequestQueue<T>
  /** `undefined`: every request runs alone. They may change. */
  batches: BatchRules | undefined

  /** @param onTimeout - gets requests that have left the queue because they waited too long. */
  constructor(
    { queue, batches }: DynamicRules,
    readonly onTimeout: (entry: T) => void,
  ) {
    this.#queue = new RequestQueue(queue)
    this.batches = batches
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** @returns whether there was room. */
  put(entry: T): boolean {
    return this.#queue.push(entry)
  }

  /** @returns whether the request was still waiting. */
  remove(entry: T): boolean {
    return this.#queue.remove(entry)
  }

  decide(nowMs: number): BatchDecision {
    this.#expire(nowMs)
    const oldestMs = this.#queue.oldestMs()
    if (oldestMs === undefined) return { kind: 'idle' }
    const { batches } = this
    if (batches === undefined) return { kind: 'run', count: 1 }
    const waiting = {
      candidates: this.#queue,
      oldestMs: nowMs - oldestMs,
      timeoutInMs: this.#queue.timeoutInMs(nowMs),
    }
    return decideDynamic(waiting, batches)
  }

  /** A request that runs alone. A batch that is handed over ahead of time can no longer grow. */
  ahead(nowMs: number): number {
    if (this.batches !== undefined) return 0
    this.#expire(nowMs)
    return Math.min(1, this.#queue.size)
  }

  take(count: number): T[] {
    return this.#queue.take(count)
  }

  #expire(nowMs: number): void {
    for (const entry of this.#queue.expire(nowMs)) this.onTimeout(entry)
  }
}

/** How batches are formed. */
export type BatchRules = Readonly<{
  /** Most items in one run, at least 1. */
  maxBatchSize: number
  /** Sizes worth running at once, ascending, at least one, none over the limit. */
  preferredSizes: readonly number[]
  /** Longest the oldest request waits for company while an instance is idle. */
  maxDelayMs: number
  /** Where runs have certain sizes: how many items of those that wait run next. */
  choice?: RunChoice | undefined
}>

/** Requests that wait while an instance is idle. */
export type RequestsWaiting = Readonly<{
  /** In the order in which they run. */
  candidates: Iterable<Candidate>
  /** How long the one that came first has waited. */
  oldestMs: number
  /** Until the first time-out in the queue; `undefined` without one. */
  timeoutInMs: number | undefined
}>

/**
 * The largest preferred size that can be reached wins while the delay has not passed. A batch that cannot grow runs at once: it is
 * full, or the next request has another shape or is too large for it.
 *
 * @see triton-inference-server/core, src/dynamic_batch_scheduler.cc, GetDynamicBatch
 */
export function decideDynamic(waiting: RequestsWaiting, rules: BatchRules): BatchDecision {
  const { pending, best, closed } = gather(waiting.candidates, rules)
  if (pending.count === 0) return { kind: 'idle' }
  const delayed = rules.maxDelayMs > 0 && waiting.oldestMs >= rules.maxDelayMs
  if (best !== undefined && !delayed) return { kind: 'run', count: best.count }
  const largestPreferred = rules.preferredSizes.at(-1) ?? rules.maxBatchSize
  if (closed || delayed || rules.maxDelayMs === 0 || pending.items >= largestPreferred)
    return { kind: 'run', count: chosen(waiting.candidates, pending, rules) }
  const leftMs = rules.maxDelayMs - waiting.oldestMs
  return { kind: 'wait', forMs: Math.max(0, Math.min(leftMs, waiting.timeoutInMs ?? leftMs)) }
}

/** The requests at the beginning that fill a run of the chosen size; at least one. */
function chosen(candidates: Iterable<Candidate>, pending: Gathered, { choice }: BatchRules): number {
  if (choice === undefined) return pending.count
  const wanted = choice.itemsOf(pending.items)
  let [count, items] = [0, 0]
  for (const { batchSize } of candidates) {
    items += batchSize
    if (count === pending.count || (count > 0 && items > wanted)) break
    count += 1
  }
  return count
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

/**
 * Without preferred sizes, the largest is preferred. `undefined` for models that take no batches.
 *
 * @param preferred - 1 to `maxBatchSize`.
 * @param costs - of sizes, ascending, where batches are filled up to these: none gets larger.
 */
export function batchRules(
  maxBatchSize: number,
  preferred: readonly number[],
  maxDelayUs = 0,
  costs?: readonly SizeCost[],
): BatchRules | undefined {
  if (maxBatchSize <= 0) return undefined
  const most = Math.min(maxBatchSize, costs?.at(-1)?.size ?? maxBatchSize)
  const reachable = preferred.filter((size) => size <= most)
  return {
    maxBatchSize: most,
    preferredSizes: reachable.length === 0 ? [most] : reachable.toSorted((a, b) => a - b),
    maxDelayMs: maxDelayUs / 1e3,
    choice: costs && new RunChoice(costs),
  }
}
