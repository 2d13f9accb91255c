import { describe, expect, it } from 'vitest'
import { searchByHalves, searchInTurn, type LevelVerdict } from '../../../src/tools/perf/level-search.js'

/** Levels that were measured, where those up to `highest` keep the limit. */
async function measured(
  search: typeof searchInTurn,
  last: number,
  highest: number,
  step = 1,
): Promise<number[]> {
  const seen: number[] = []
  await search({ first: 1, last, step }, async (level): Promise<LevelVerdict> => {
    seen.push(level)
    return level <= highest ? 'kept' : 'broken'
  })
  return seen
}

it('goes up until a level breaks the limit', async () => {
  expect(await measured(searchInTurn, 5, 9)).toEqual([1, 2, 3, 4, 5])
  expect(await measured(searchInTurn, 5, 2)).toEqual([1, 2, 3])
})

describe('by halves', () => {
  it.each(Array.from({ length: 66 }, (_, index) => index))(
    'finds that %i of 64 is the highest',
    async (highest) => {
      const seen = await measured(searchByHalves, 64, highest)
      expect(seen.length).toBeLessThanOrEqual(8)
      expect(new Set(seen).size).toBe(seen.length)
      const kept = seen.filter((level) => level <= highest)
      expect(Math.max(0, ...kept)).toBe(Math.min(64, highest))
    },
  )

  it('does not look closer than a step, and ends when nothing can be measured', async () => {
    expect((await measured(searchByHalves, 64, 20, 8)).every((level) => (level - 1) % 8 === 0)).toBe(true)
    const seen: number[] = []
    await searchByHalves({ first: 1, last: 64, step: 1 }, async (level) => {
      seen.push(level)
      return 'ended'
    })
    expect(seen).toEqual([1])
  })
})
