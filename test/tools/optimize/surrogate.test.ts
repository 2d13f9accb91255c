import { expect, it } from 'vitest'
import type { SpacePlace } from '../../../src/tools/optimize/search-space.js'
import { expectedImprovement, Surrogate } from '../../../src/tools/optimize/surrogate.js'

const place = (...at: readonly number[]): SpacePlace => at.map((each) => ({ at: each, isOnScale: true }))

it('expects at a place that is known what was found there', () => {
  const places = [place(0, 0), place(0.5, 0), place(1, 0), place(0, 1), place(1, 1)]
  const values = [1, 2, 3, 2, 4]
  const model = new Surrogate(places, values)
  for (const [index, known] of places.entries()) {
    const { mean, deviation } = model.at(known)
    expect(mean).toBeCloseTo(values[index]!, 0.5)
    expect(deviation).toBeLessThan(0.2)
  }
})

it('is less sure the further away it is', () => {
  const model = new Surrogate([place(0), place(0.1)], [1, 2])
  expect(model.at(place(0.2)).deviation).toBeLessThan(model.at(place(1)).deviation)
})

it('adds up what dimensions do alone', () => {
  const known = [
    [0, 0],
    [0.5, 0],
    [1, 0],
    [0, 0.5],
    [0, 1],
    [0.5, 0.5],
    [1, 0.5],
    [0.5, 1],
  ] as const
  const model = new Surrogate(
    known.map((at) => place(...at)),
    known.map(([a, b]) => a + b),
  )
  expect(model.at(place(1, 1)).mean).toBeGreaterThan(1.6)
})

it('is not upset by values that are all the same', () => {
  const { mean, deviation } = new Surrogate([place(0), place(1)], [5, 5]).at(place(0.5))
  expect([mean, deviation].every(Number.isFinite)).toBe(true)
  expect(mean).toBeCloseTo(5)
})

it('expects an improvement of the mean, and of doubt', () => {
  expect(expectedImprovement({ mean: 3, deviation: 0 }, 1)).toBe(2)
  expect(expectedImprovement({ mean: 1, deviation: 0 }, 3)).toBe(0)
  // Of a standard normal variable above 0: its density at 0.
  expect(expectedImprovement({ mean: 0, deviation: 1 }, 0)).toBeCloseTo(1 / Math.sqrt(2 * Math.PI), 6)
  expect(expectedImprovement({ mean: 0, deviation: 2 }, 1)).toBeGreaterThan(
    expectedImprovement({ mean: 0, deviation: 1 }, 1),
  )
})
