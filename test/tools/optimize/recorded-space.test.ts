import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { searchCandidates } from '../../../src/tools/optimize/search.js'
import {
  type Configuration,
  placeOf,
  type SearchSpace,
  usualOnes,
} from '../../../src/tools/optimize/search-space.js'

/** Every configuration of a space as it was measured once, by `test/bench/optimize-space.bench.ts`: gains over the baseline. */
type RecordedSpace = Readonly<{
  space: SearchSpace
  rows: readonly (Configuration & Readonly<{ gain: number; p99Ms: number }>)[]
}>

const { space, rows } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'recorded-space.json'), 'utf8'),
) as RecordedSpace
const places = rows.map((row) => placeOf(row, space))
const tenth = Math.floor(rows.length / 10)
const first = usualOnes(rows, 2)
const seeds = Array.from({ length: 20 }, (_, index) => index + 1)

/**
 * @param limitMs - of p99.
 * @returns the best that is found over the best that there is, for each seed.
 */
async function searched(limitMs: number): Promise<readonly number[]> {
  const kept = ({ gain, p99Ms }: RecordedSpace['rows'][number]) => (p99Ms <= limitMs ? gain : 0)
  const best = Math.max(...rows.map(kept))
  return Promise.all(
    seeds.map(async (seed) => {
      const order = await searchCandidates(
        places,
        { trials: tenth, seed, first, patience: tenth },
        (index) => {
          const { gain, p99Ms } = rows[index]!
          return Promise.resolve(Math.log(gain) - Math.log(Math.max(1, p99Ms / limitMs)))
        },
      )
      expect(order.length).toBeLessThanOrEqual(tenth)
      return Math.max(...order.map((index) => kept(rows[index]!))) / best
    }),
  )
}

describe('a search of a recorded space', () => {
  it('has enough to be one', () => {
    expect(rows.length).toBeGreaterThan(200)
    const gains = rows.map(({ gain }) => gain)
    expect(Math.max(...gains) / Math.min(...gains)).toBeGreaterThan(2)
  })

  it.each([Infinity, 100, 30])(
    'comes to 95 %% of the best throughput with a tenth of the trials, whatever the seed, with a p99 up to %s ms',
    async (limitMs) => {
      for (const share of await searched(limitMs)) expect(share).toBeGreaterThanOrEqual(0.95)
    },
  )

  it('does not by chance: as many at random miss it', async () => {
    const gains = rows.map(({ gain }) => gain)
    const near = gains.filter((gain) => gain >= 0.95 * Math.max(...gains)).length
    // The chance that none of a tenth drawn at random is among those.
    const miss = (1 - near / rows.length) ** tenth
    expect(miss).toBeGreaterThan(0.05)
  })
})
