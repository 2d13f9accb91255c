import { bucketSeconds } from '../../runtime/statistics.js'

/**
 * The value that a share of what was counted does not exceed, in seconds; within a bucket as if they were spread evenly, as Prometheus
 * reckons. What is over all bounds counts as the last of them.
 *
 * @param counts - by `bucketSeconds`, not cumulative.
 * @returns undefined where nothing was counted.
 */
export function bucketQuantile(counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let before = 0
  for (const [index, count] of counts.entries()) {
    const [from, to] = [bucketSeconds[index - 1] ?? 0, bucketSeconds[index]]
    if (to === undefined) break
    if (count > 0 && before + count >= share * total)
      return from + (to - from) * ((share * total - before) / count)
    before += count
  }
  return bucketSeconds.at(-1)
}

/** Median and 99th percentile in milliseconds; `null` where nothing was counted. */
export function latencyOf(counts: readonly number[]): Readonly<{ p50: number; p99: number }> | null {
  const [p50, p99] = [bucketQuantile(counts, 0.5), bucketQuantile(counts, 0.99)]
  return p50 === undefined || p99 === undefined ? null : { p50: p50 * 1_000, p99: p99 * 1_000 }
}
