import { expect, it } from 'vitest'
import { arrivalGaps } from '../../../src/tools/perf/arrivals.js'

const many = 20_000
const gapsOf = (distribution: 'constant' | 'poisson', seed = 1) => {
  const next = arrivalGaps({ perSecond: 100, distribution, seed })
  return Array.from({ length: many }, next)
}
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

it('are all equal when constant', () => {
  expect(new Set(gapsOf('constant'))).toEqual(new Set([10]))
})

it('have the mean and the spread of a Poisson process', () => {
  const gaps = gapsOf('poisson')
  expect(mean(gaps)).toBeGreaterThan(9.7)
  expect(mean(gaps)).toBeLessThan(10.3)
  // The deviation of exponential gaps is their mean; a share of e^-1 is longer than it.
  expect(Math.sqrt(mean(gaps.map((gap) => (gap - 10) ** 2)))).toBeCloseTo(10, -0.5)
  expect(gaps.filter((gap) => gap > 10).length / many).toBeCloseTo(Math.exp(-1), 1.5)
})

it('are those that were recorded, from the first again after the last', () => {
  const next = arrivalGaps({ gapsMs: [5, 0, 20] })
  expect(Array.from({ length: 5 }, next)).toEqual([5, 0, 20, 5, 0])
})

it('are the same for the same seed', () => {
  expect(gapsOf('poisson', 7)).toEqual(gapsOf('poisson', 7))
  expect(gapsOf('poisson', 7)).not.toEqual(gapsOf('poisson', 8))
})
