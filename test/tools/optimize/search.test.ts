import { expect, it } from 'vitest'
import { searchCandidates } from '../../../src/tools/optimize/search.js'
import type { SpacePlace } from '../../../src/tools/optimize/search-space.js'

/** A grid of three numbers and a kind, 192 places. */
const places: readonly SpacePlace[] = [0, 1, 2].flatMap((kind) =>
  [0, 1 / 3, 2 / 3, 1].flatMap((a) =>
    [0, 1 / 3, 2 / 3, 1].flatMap((b) =>
      [0, 1 / 3, 2 / 3, 1].map((c) => [
        { at: kind, isOnScale: false },
        { at: a, isOnScale: true },
        { at: b, isOnScale: true },
        { at: c, isOnScale: true },
      ]),
    ),
  ),
)
const kinds = [0, 0.6, 0.3]
/** Best at one place inside: 1, 2/3, 1/3, 1. */
const valueAt = (index: number) => {
  const [kind, a, b, c] = places[index]!.map(({ at }) => at) as [number, number, number, number]
  return kinds[kind]! - (a - 2 / 3) ** 2 - (b - 1 / 3) ** 2 + 0.5 * c * (1 - Math.abs(b - 1 / 3))
}
const best = Math.max(...places.map((_, index) => valueAt(index)))
const options = { trials: 24, seed: 1, patience: 24 }

it('tries every candidate once where there are no more than trials', async () => {
  const order = await searchCandidates(places.slice(0, 20), options, (index) =>
    Promise.resolve(valueAt(index)),
  )
  expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index))
})

it('comes to the best with an eighth of the trials, whatever the seed', async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const order = await searchCandidates(places, { ...options, seed }, (index) =>
      Promise.resolve(valueAt(index)),
    )
    expect(order.length).toBeLessThanOrEqual(24)
    expect(new Set(order).size).toBe(order.length)
    expect(Math.max(...order.map(valueAt))).toBeGreaterThan(best - 0.05)
  }
})

it('is the same for the same seed, so that a search can be gone on with', async () => {
  const search = (seed: number) =>
    searchCandidates(places, { ...options, seed }, (index) => Promise.resolve(valueAt(index)))
  expect(await search(7)).toEqual(await search(7))
  expect(await search(7)).not.toEqual(await search(8))
})

it('tries others where some cannot be used', async () => {
  const order = await searchCandidates(places, options, (index) =>
    Promise.resolve(places[index]![0]!.at === 1 ? undefined : valueAt(index)),
  )
  const usable = order.filter((index) => places[index]![0]!.at !== 1)
  expect(Math.max(...usable.map(valueAt))).toBeGreaterThan(best - 0.3 - 0.05)
})

it('ends where nothing better is found for a while', async () => {
  let tried = 0
  await searchCandidates(places, { trials: 100, seed: 1, patience: 5 }, () => {
    tried += 1
    return Promise.resolve(0)
  })
  expect(tried).toBeLessThan(20)
})

it('begins with what it is told to begin with', async () => {
  const order = await searchCandidates(places, { ...options, first: [11, 7] }, (index) =>
    Promise.resolve(valueAt(index)),
  )
  expect(order.slice(0, 2)).toEqual([11, 7])
})
