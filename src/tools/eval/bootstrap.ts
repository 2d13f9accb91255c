import { recallThresholds } from './coco-match.js'
import type { Ranking } from './precision-recall.js'

/** The middle 95 % of what other pictures of the same kind could have given. */
export type Interval = Readonly<{ low: number; high: number }>

/** Draws of pictures with repetition: how often each is in each draw. The same draws for all models, so that they are compared in pairs. */
export type Draws = readonly Uint16Array[]

/** @param seed - the same seed gives the same draws. */
export function drawsOf(pictures: number, count: number, seed: number): Draws {
  const random = generator(seed)
  return Array.from({ length: count }, () => {
    const times = new Uint16Array(pictures)
    for (let draw = 0; draw < pictures; draw++) times[Math.floor(random() * pictures)]! += 1
    return times
  })
}

/** Numbers 0..1 by the method of mulberry32. */
export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The right and wrong detections of a class at one IoU threshold, best first, and where its truths are. */
type Events = Readonly<{ pictures: Int32Array; right: Uint8Array }>
export type ResampledClass = Readonly<{ events: readonly Events[]; positives: Float64Array }>

/** @param positives - truths of the class that count, by picture. */
export function resampled(ranking: Ranking, positives: Float64Array): ResampledClass {
  const events = ranking.verdicts.map((verdict) => {
    // What is wrong behind the last right one lowers no precision that counts.
    const places = [...verdict.subarray(0, verdict.lastIndexOf(1) + 1).keys()].filter(
      (place) => verdict[place] !== 2,
    )
    return {
      pictures: Int32Array.from(places, (place) => ranking.pictures[place]!),
      right: Uint8Array.from(places, (place) => verdict[place]!),
    }
  })
  return { events, positives }
}

/** mAP over the pictures of one draw, as over a set that has each so often; undefined where it has nothing to be found. */
export function mapOfDraw(classes: readonly ResampledClass[], times: Uint16Array): number | undefined {
  let sum = 0
  let count = 0
  for (const { events, positives } of classes) {
    let wanted = 0
    for (let picture = 0; picture < times.length; picture++) wanted += times[picture]! * positives[picture]!
    if (wanted === 0) continue
    for (const each of events) {
      sum += averagePrecision(each, times, wanted)
      count += 1
    }
  }
  return count === 0 ? undefined : sum / count
}

/** From the end on, the best precision so far is that of every recall not yet told. */
function averagePrecision({ pictures, right }: Events, times: Uint16Array, wanted: number): number {
  let found = 0
  let wrong = 0
  for (let place = 0; place < right.length; place++) {
    if (right[place] === 1) found += times[pictures[place]!]!
    else wrong += times[pictures[place]!]!
  }
  let next = recallThresholds.length - 1
  while (next >= 0 && recallThresholds[next]! > found / wanted) next -= 1
  let best = 0
  let sum = 0
  for (let place = right.length - 1; place >= 0 && next >= 0; place--) {
    const weight = times[pictures[place]!]!
    if (weight === 0) continue
    best = Math.max(best, found / (found + wrong))
    if (right[place] === 1) {
      // Every recall above that of the place before is first reached here.
      const before = (found - weight) / wanted
      while (next >= 0 && recallThresholds[next]! > before) {
        sum += best
        next -= 1
      }
      found -= weight
    } else wrong -= weight
  }
  return (sum + (next + 1) * best) / recallThresholds.length
}

/** The 2.5th and the 97.5th percentile. @param values - of all draws that had one; at least one. */
export function intervalOf(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!
  return { low: at(0.025), high: at(0.975) }
}
