import { performance } from 'node:perf_hooks'

/** How busy the loop may be before messages are gathered, and from where on for as long as may be: shares of its time. */
export type GatherLimits = Readonly<{ idleLoad: number; busyLoad: number; gatherMs: number }>

/**
 * How long after its publishing a message may wait for others to go with it. Nothing while the loop that sends them has time: then a
 * wait only makes them late. The square keeps it short at first, since a little of it already saves much: with 50 messages a second,
 * 10 ms make two writes of three.
 *
 * @param load - share of its time that the loop is busy, 0..1
 */
export function mostWaitMs(load: number, { idleLoad, busyLoad, gatherMs }: GatherLimits): number {
  const share = (load - idleLoad) / (busyLoad - idleLoad)
  return gatherMs * Math.min(1, Math.max(0, share)) ** 2
}

/** After so long a share counts for a third. Gathering makes the loop less busy, so that its load is followed slowly, lest the two swing. */
const memoryMs = 1_000
/** To look at the loop costs a microsecond; a burst of messages shares one look. */
const lookAfterMs = 100

/** A mean of shares over time, in which the newest count most. */
export function followed(before: number, share: number, overMs: number): number {
  return share + (before - share) * Math.exp(-overMs / memoryMs)
}

/**
 * How busy the loop of this thread was lately. It counts as busy also while the system lets others go first, so that what gives way on a
 * busy machine has less to do there.
 */
export class LoopLoad {
  #seen = performance.eventLoopUtilization()
  #load = 0

  /** 0..1 */
  now(): number {
    const { active, idle, utilization } = performance.eventLoopUtilization(this.#seen)
    const overMs = active + idle
    if (overMs < lookAfterMs) return this.#load
    this.#seen = performance.eventLoopUtilization()
    this.#load = followed(this.#load, utilization, overMs)
    return this.#load
  }
}
