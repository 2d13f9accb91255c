import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RunChoice, type SizeCost, sizeFor, sizesUpTo, usualSizes } from '../../src/runtime/batch-sizes.js'

describe('sizes of batches', () => {
  it.each([
    [1, [1]],
    [2, [1, 2]],
    [4, [1, 4]],
    [8, [1, 4, 8]],
    [16, [1, 4, 16]],
    [32, [1, 4, 16, 32]],
  ])('up to %i are usually %j', (largest, sizes) => {
    expect(usualSizes(largest)).toEqual(sizes)
    expect(sizesUpTo(largest, [])).toEqual(sizes)
  })

  it('are those that are asked for, in order and once, with the largest batch', () => {
    expect(sizesUpTo(16, [8, 2, 8])).toEqual([2, 8, 16])
    expect(sizesUpTo(8, [8])).toEqual([8])
    expect(sizesUpTo(4, [2, 8, 16])).toEqual([2, 4])
  })

  it('take a batch that is as large or smaller', () => {
    expect([1, 2, 4, 5, 8].map((items) => sizeFor([1, 4, 8], items))).toEqual([1, 4, 4, 8, 8])
  })
})

/** Shortest sum of the waits of so many, by trying every order of runs. */
function shortest(waiting: number, costs: readonly SizeCost[]): number {
  if (waiting === 0) return 0
  return Math.min(
    ...costs.map(({ size, ms }) => waiting * ms + shortest(waiting - Math.min(size, waiting), costs)),
  )
}

function waitsOf(waiting: number, choice: RunChoice, costs: readonly SizeCost[]): number {
  let [left, sum] = [waiting, 0]
  while (left > 0) {
    const items = choice.itemsOf(left)
    // Run at the cheapest size that takes them.
    sum += left * Math.min(...costs.filter(({ size }) => size >= items).map(({ ms }) => ms))
    left -= items
  }
  return sum
}

describe('how many run next', () => {
  it('fills up where a larger run costs little more, and splits where it costs much', () => {
    const flat = new RunChoice([
      { size: 1, ms: 10 },
      { size: 4, ms: 11 },
      { size: 16, ms: 14 },
    ])
    expect([1, 2, 4, 5, 15, 16].map((waiting) => flat.itemsOf(waiting))).toEqual([1, 2, 4, 4, 15, 16])
    const steep = new RunChoice([
      { size: 1, ms: 3 },
      { size: 4, ms: 5 },
      { size: 16, ms: 20 },
    ])
    expect([1, 2, 4, 5, 8].map((waiting) => steep.itemsOf(waiting))).toEqual([1, 1, 4, 4, 4])
  })

  it('takes the largest batch of more than that', () => {
    expect(new RunChoice([{ size: 4, ms: 1 }]).itemsOf(100)).toBe(4)
  })

  it('waits as little as any other order of runs would', () => {
    const sizes = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 })
    const costs = sizes.chain((chosen) =>
      fc.tuple(...chosen.map((size) => fc.integer({ min: 1, max: 50 }).map((ms) => ({ size, ms })))),
    )
    fc.assert(
      fc.property(costs, fc.integer({ min: 1, max: 9 }), (all, wanted) => {
        const waiting = Math.min(wanted, Math.max(...all.map(({ size }) => size)))
        const choice = new RunChoice(all)
        const items = choice.itemsOf(waiting)
        expect(items).toBeGreaterThanOrEqual(1)
        expect(items).toBeLessThanOrEqual(waiting)
        expect(waitsOf(waiting, choice, all)).toBe(shortest(waiting, all))
      }),
    )
  })
})
