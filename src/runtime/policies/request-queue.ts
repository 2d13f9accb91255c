import { levelOf, type LevelRules, type QueueRules, timeoutOf } from './queue-rules.js'

export type Candidate = Readonly<{
  /** Items of the request, from 1 to the limit. */
  batchSize: number
  /** Requests share a run only if this is the same: shapes of their items, and which optional inputs they have. */
  shapeKey: string
}>

/** What a queue needs to know of a request. Times are of {@link nowMs}. */
export interface QueueEntry extends Candidate {
  readonly enqueuedMs: number
  /** 0 takes the default level. */
  readonly priority: number
  /** 0: none. */
  readonly timeoutUs: number
}

type Level<T> = { rules: LevelRules; waiting: Map<T, number>; delayed: Set<T> }

/**
 * Requests that wait for an instance, by priority level and then by arrival; those that were delayed come behind the others of
 * their level.
 */
export class RequestQueue<T extends QueueEntry> {
  readonly #levels: readonly Level<T>[]
  /** No time-out passes before; later than it need be after a removal. */
  #closestMs = Infinity

  constructor(readonly rules: QueueRules) {
    this.#levels = rules.levels.map((level) => ({ rules: level, waiting: new Map(), delayed: new Set() }))
  }

  get size(): number {
    let size = 0
    for (const level of this.#levels) size += level.waiting.size + level.delayed.size
    return size
  }

  /** @returns whether there was room. */
  push(entry: T): boolean {
    const level = this.#levelOf(entry)
    const { maxSize } = level.rules
    if (maxSize > 0 && level.waiting.size + level.delayed.size >= maxSize) return false
    const timeoutMs = timeoutOf(level.rules, entry.timeoutUs)
    const deadlineMs = timeoutMs > 0 ? entry.enqueuedMs + timeoutMs : Infinity
    level.waiting.set(entry, deadlineMs)
    this.#closestMs = Math.min(this.#closestMs, deadlineMs)
    return true
  }

  /** @returns whether it was there. */
  remove(entry: T): boolean {
    const level = this.#levelOf(entry)
    return level.waiting.delete(entry) || level.delayed.delete(entry)
  }

  /** In the order in which they run. */
  *[Symbol.iterator](): Generator<T> {
    for (const level of this.#levels) {
      yield* level.waiting.keys()
      yield* level.delayed
    }
  }

  /** Takes from the front. */
  take(count: number): T[] {
    const taken: T[] = []
    for (const entry of this) {
      if (taken.length === count) break
      taken.push(entry)
    }
    for (const entry of taken) this.remove(entry)
    return taken
  }

  /** Delays what is to be delayed. @returns the requests to be rejected, which have left the queue. */
  expire(nowMs: number): T[] {
    if (nowMs < this.#closestMs) return []
    const rejected: T[] = []
    this.#closestMs = Infinity
    for (const { rules, waiting, delayed } of this.#levels)
      for (const [entry, deadlineMs] of waiting) {
        if (nowMs < deadlineMs) {
          this.#closestMs = Math.min(this.#closestMs, deadlineMs)
          continue
        }
        waiting.delete(entry)
        if (rules.onTimeout === 'DELAY') delayed.add(entry)
        else rejected.push(entry)
      }
    return rejected
  }

  /** Until the first time-out; `undefined` without one. */
  timeoutInMs(nowMs: number): number | undefined {
    return this.#closestMs === Infinity ? undefined : Math.max(0, this.#closestMs - nowMs)
  }

  /** When the oldest came, over all levels; `undefined` if nothing waits. */
  oldestMs(): number | undefined {
    let oldest: number | undefined
    for (const { waiting, delayed } of this.#levels)
      for (const entries of [waiting.keys(), delayed.values()]) {
        const first = entries.next()
        if (first.done !== true) oldest = Math.min(oldest ?? Infinity, first.value.enqueuedMs)
      }
    return oldest
  }

  #levelOf(entry: T): Level<T> {
    return this.#levels[levelOf(entry.priority, this.rules) - 1]!
  }
}
