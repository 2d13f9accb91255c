import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseCuts } from '../../../src/tools/split/choose-cuts.js'

describe('chooseCuts', () => {
  it.each([
    [
      'the narrowest of the balanced places',
      Array(10).fill(1) as number[],
      [9, 1, 9, 5, 9, 2, 9, 1, 9],
      2,
      [5],
    ],
    ['a wide place rather than parts out of balance', [1, 1, 1, 1, 1, 1], [1, 9, 9, 9, 1], 2, [2]],
    ['two places together, not each for itself', [1, 1, 1, 1, 1, 1], [9, 4, 3, 4, 9], 3, [1, 3]],
    ['where it may be cut', [1, 1, 1, 1], [Infinity, Infinity, 7], 2, [2]],
    ['a part with nearly all the work where one node has it', [1, 100, 1], [2, 1], 2, [1]],
  ])('takes %s', (_, work, crossing, stages, cuts) => {
    expect(chooseCuts({ work, crossing }, stages)).toEqual(cuts)
  })

  it('says that there are too few places', () => {
    expect(chooseCuts({ work: [1, 1, 1], crossing: [Infinity, 3] }, 3)).toBeUndefined()
  })

  it('gives as many ascending places as asked for, all of them allowed', () => {
    const node = fc.record({ work: fc.nat(100), bytes: fc.oneof(fc.nat(1000), fc.constant(Infinity)) })
    fc.assert(
      fc.property(
        fc.array(node, { minLength: 2, maxLength: 30 }),
        fc.integer({ min: 2, max: 5 }),
        (nodes, stages) => {
          const crossing = nodes.slice(0, -1).map(({ bytes }) => bytes)
          const cuts = chooseCuts({ work: nodes.map(({ work }) => work), crossing }, stages)
          const places = crossing.filter(Number.isFinite).length
          expect(cuts === undefined).toBe(places < stages - 1)
          expect(cuts?.length ?? stages - 1).toBe(stages - 1)
          cuts?.forEach((cut, index) => {
            expect(crossing[cut]).toBeLessThan(Infinity)
            if (index > 0) expect(cut).toBeGreaterThan(cuts[index - 1]!)
          })
        },
      ),
    )
  })
})
