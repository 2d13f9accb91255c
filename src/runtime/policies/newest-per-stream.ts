import { LatestSlots, type QueueItem } from './latest-slots.js'
import type { RunChoice } from '../batch-sizes.js'
import type { BatchDecision, Policy } from './policy.js'

/** How runs are formed. */
export type BatchLimits = Readonly<{
  /** Most items in one run. */
  maxBatchSize: number
  /** Longest an item waits for company while an instance is idle. */
  maxQueueDelayMs: number
  /** Where runs have certain sizes: how many of those that wait run next. */
  choice?: RunChoice | undefined
}>

/** Items of streams that wait while an instance is idle. */
export type StreamsWaiting = Readonly<{
  count: number
  /** How long the oldest has waited. */
  oldestMs: number
  /** Most that could ever wait at once; one per stream. */
  possible: number
}>

/** The newest item of each stream, for cameras: nothing else ever waits, and each stream has its turn. */
export class NewestPerStream<T extends QueueItem> implements Policy<T> {
  readonly #slots = new LatestSlots<T>()
  readonly #streams = new Set<string>()

  /** @param limits - they may change. */
  constructor(public limits: BatchLimits) {}

  get waiting(): number {
    return this.#slots.size
  }

  /** @returns the older item of the same stream that it superseded, which now belongs to the caller. */
  put(item: T): T | undefined {
    this.#streams.add(item.streamId)
    return this.#slots.put(item)
  }

  /** Forgets a stream. @returns its waiting item, which now belongs to the caller. */
  removeStream(streamId: string): T | undefined {
    this.#streams.delete(streamId)
    return this.#slots.remove(streamId)
  }

  decide(nowMs: number): BatchDecision {
    const sinceMs = this.#slots.waitingSinceMs
    const waiting = {
      count: this.#slots.size,
      oldestMs: sinceMs === undefined ? 0 : nowMs - sinceMs,
      possible: this.#streams.size,
    }
    return decideNewest(waiting, this.limits)
  }

  /** A full batch: one that could still grow stays, so that newer items may take the place of those in it. */
  ahead(): number {
    const { size } = this.#slots
    return isFull(size, this.#streams.size, this.limits) ? itemsToRun(size, this.limits) : 0
  }

  take(count: number): T[] {
    return this.#slots.take(count)
  }
}

/** Waiting pays only while more can come: a full batch, or one item of every stream, runs at once. */
export function decideNewest(waiting: StreamsWaiting, limits: BatchLimits): BatchDecision {
  const { count, oldestMs, possible } = waiting
  if (count === 0) return { kind: 'idle' }
  const leftMs = limits.maxQueueDelayMs - oldestMs
  if (!isFull(count, possible, limits) && leftMs > 0) return { kind: 'wait', forMs: leftMs }
  return { kind: 'run', count: itemsToRun(count, limits) }
}

function itemsToRun(count: number, { maxBatchSize, choice }: BatchLimits): number {
  return choice?.itemsOf(count) ?? Math.min(count, maxBatchSize)
}

/** Whether waiting for more would not make the next batch larger. */
function isFull(count: number, possible: number, { maxBatchSize }: BatchLimits): boolean {
  return count >= Math.min(maxBatchSize, Math.max(1, possible))
}
