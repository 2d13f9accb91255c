import { expect, it } from 'vitest'
import { bucketSeconds, DurationHistogram } from '../../../src/runtime/statistics.js'
import { bucketQuantile, latencyOf } from '../../../src/serving/metrics/bucket-quantile.js'

function counted(...milliseconds: readonly number[]): readonly number[] {
  const histogram = new DurationHistogram()
  for (const ms of milliseconds) histogram.observe(ms * 1e6)
  return histogram.counts
}

it('knows no quantile of nothing', () => {
  expect(bucketQuantile(counted(), 0.5)).toBeUndefined()
  expect(bucketQuantile([], 0.5)).toBeUndefined()
  expect(latencyOf(counted())).toBeNull()
})

it('reads quantiles within the bucket that they fall into', () => {
  const counts = counted(...Array.from({ length: 99 }, () => 7), 400)
  const { p50 = 0, p99 = 0 } = latencyOf(counts) ?? {}
  expect(p50).toBeGreaterThan(5)
  expect(p50).toBeLessThanOrEqual(10)
  expect(p99).toBeLessThanOrEqual(10)
  expect(bucketQuantile(counts, 1)).toBeCloseTo(0.5)
})

it('takes what is over all bounds for the last of them', () => {
  expect(bucketQuantile(counted(100_000), 0.99)).toBe(bucketSeconds.at(-1))
})
