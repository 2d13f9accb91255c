import { expect, it } from 'vitest'
import { Latencies, latencySummary, quantileOf } from '../../../src/tools/perf/latencies.js'

it('keeps any number of them', () => {
  const latencies = new Latencies()
  for (let value = 5_000; value > 0; value--) latencies.add(value)
  const twice = new Latencies()
  twice.addAll(latencies)
  twice.addAll(latencies)
  expect(twice.count).toBe(10_000)
  expect(twice.mean).toBe(2_500.5)
  expect(latencySummary(latencies)).toEqual({
    mean: 2_500.5,
    min: 1,
    p50: 2_501,
    p90: 4_500,
    p95: 4_750,
    p99: 4_950,
    max: 5_000,
  })
})

it('takes quantiles at the nearest place, as perf_analyzer does', () => {
  const ten = Float64Array.from({ length: 10 }, (_, index) => index)
  expect([0, 0.5, 0.9, 0.99, 1].map((of) => quantileOf(ten, of))).toEqual([0, 5, 8, 9, 9])
})

it('is 0 without any', () => {
  expect(latencySummary(new Latencies(), 1e3)).toEqual({
    mean: 0,
    min: 0,
    p50: 0,
    p90: 0,
    p95: 0,
    p99: 0,
    max: 0,
  })
})
