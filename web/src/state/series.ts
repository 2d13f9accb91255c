/** Figures of one stretch of time. `p50` and `p99` are `null` when nothing was analysed in it. */
export type Point = Readonly<{ atS: number; fps: number; p50Ms: number | null; p99Ms: number | null }>

export const bucketMs = 2_000
const keptPoints = 150

/** Latency and throughput over the last five minutes, gathered in stretches of two seconds. */
export class Series {
  readonly #points: Point[] = []
  #latenciesMs: number[] = []
  #bucket: number | undefined
  #first = true

  /** Counts one result that arrived at `nowMs`. */
  add(nowMs: number, latencyMs: number): void {
    this.advance(nowMs)
    this.#latenciesMs.push(latencyMs)
  }

  /** Closes the stretches that have passed; the one that runs is not shown, it would look like a drop. */
  advance(nowMs: number): void {
    const bucket = Math.floor(nowMs / bucketMs)
    this.#bucket ??= bucket
    const missed = bucket - this.#bucket
    // A tab that slept has nothing to say about the time before.
    for (let step = Math.max(0, missed - keptPoints); step < missed; step += 1)
      this.#close(this.#bucket + step)
    this.#bucket = bucket
  }

  get points(): readonly Point[] {
    return this.#points
  }

  #close(bucket: number): void {
    const sorted = this.#latenciesMs.sort((a, b) => a - b)
    this.#latenciesMs = []
    // The page was opened in the middle of the first one.
    if (this.#first) {
      this.#first = false
      return
    }
    this.#points.push({
      atS: ((bucket + 1) * bucketMs) / 1000,
      fps: sorted.length / (bucketMs / 1000),
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
    })
    if (this.#points.length > keptPoints) this.#points.shift()
  }
}

/** Nearest rank in ascending values; `null` of none. */
export function percentile(ascending: readonly number[], share: number): number | null {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? null
}
