/**
 * Figures of one stretch of time. `p50` and `p99` are `null` when nothing was captured in it that was analysed; all three when this page
 * cannot know.
 */
export type Point = Readonly<{ atS: number; fps: number | null; p50Ms: number | null; p99Ms: number | null }>

export const bucketMs = 2_000
const keptPoints = 150
/** A stretch is shown once results of it have had so long to come, or as long as those before took. */
const [leastLateMs, mostLateMs] = [1_000, 10_000]
/** With each result the longest way of earlier ones counts less. */
const forgotten = 0.99

type Bucket = { latenciesMs: number[]; point: Point | undefined }

/**
 * Latency and throughput over the last five minutes, in stretches of two seconds by time of capture: what is replayed after a break fills
 * the stretches in which it was captured, not the one in which it came. Times are wall times of the service, in ms.
 */
export class Series {
  readonly #buckets = new Map<number, Bucket>()
  readonly #unknown = new Set<number>()
  /** The stretch in which the page was opened is cut, and so not shown. */
  #first: number | undefined
  #brokeAtMs: number | undefined
  #lastBreak: readonly [fromMs: number, toMs: number] | undefined
  #shown: readonly Point[] = []
  #shownTo = 0
  #changed = false
  #lateMs = leastLateMs

  /** Counts one result. */
  add(capturedAtMs: number, latencyMs: number): void {
    const index = bucketOf(capturedAtMs)
    if (this.#first === undefined || index <= this.#first) return
    this.#lateMs = Math.min(mostLateMs, Math.max(leastLateMs, latencyMs, this.#lateMs * forgotten))
    const bucket = this.#buckets.get(index) ?? { latenciesMs: [], point: undefined }
    bucket.latenciesMs.push(latencyMs)
    bucket.point = undefined
    this.#buckets.set(index, bucket)
    if (index < this.#shownTo) this.#changed = true
  }

  /** Results come from now on, and those since the break, if there was one, soon. */
  opened(nowMs: number): void {
    this.#first ??= bucketOf(nowMs)
    if (this.#brokeAtMs === undefined) return
    this.#lastBreak = [this.#brokeAtMs, nowMs]
    this.#brokeAtMs = undefined
    this.#changed = true
  }

  /** No results come any more: nobody knows what happens until it is {@link opened} again. */
  broke(nowMs: number): void {
    this.#brokeAtMs ??= nowMs
  }

  /** Of the last break not everything could be told. */
  missed(): void {
    if (this.#lastBreak === undefined) return
    const [from, to] = this.#lastBreak.map(bucketOf) as [number, number]
    for (let index = Math.max(from, to - keptPoints); index <= to; index += 1) this.#unknown.add(index)
    this.#changed = true
  }

  /** Stretches that are over, oldest first; the same array while nothing changed. The one that runs would look like a drop. */
  points(nowMs: number): readonly Point[] {
    if (this.#first === undefined) return this.#shown
    const end = bucketOf((this.#brokeAtMs ?? nowMs) - this.#lateMs)
    if (end <= this.#shownTo && !this.#changed) return this.#shown
    this.#shownTo = end
    this.#changed = false
    const begin = Math.max(this.#first + 1, end - keptPoints)
    for (const index of this.#buckets.keys()) if (index < begin) this.#buckets.delete(index)
    for (const index of this.#unknown) if (index < begin) this.#unknown.delete(index)
    this.#shown = Array.from({ length: Math.max(0, end - begin) }, (_, i) => this.#point(begin + i))
    return this.#shown
  }

  #point(index: number): Point {
    const atS = ((index + 1) * bucketMs) / 1000
    const bucket = this.#buckets.get(index)
    if (bucket === undefined)
      return { atS, fps: this.#unknown.has(index) ? null : 0, p50Ms: null, p99Ms: null }
    bucket.point ??= pointOf(atS, bucket.latenciesMs)
    return bucket.point
  }
}

function pointOf(atS: number, latenciesMs: readonly number[]): Point {
  const sorted = [...latenciesMs].sort((a, b) => a - b)
  return {
    atS,
    fps: sorted.length / (bucketMs / 1000),
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
  }
}

function bucketOf(ms: number): number {
  return Math.floor(ms / bucketMs)
}

/** Nearest rank in ascending values; `null` of none. */
export function percentile(ascending: readonly number[], share: number): number | null {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? null
}
