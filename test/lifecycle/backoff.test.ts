import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/lifecycle/backoff.js'

const limits = { baseMs: 500, capMs: 30_000 }

describe('backoffMs', () => {
  it.each([
    ['the first wait is at most the base', 0, 500],
    ['the bound doubles', 3, 4_000],
    ['the bound stops at the cap', 12, 30_000],
    ['a huge attempt number does not overflow', 5_000, 30_000],
  ])('%s', (_, attempt, boundMs) => {
    expect(backoffMs(attempt, limits, () => 0.999)).toBeCloseTo(boundMs * 0.999)
  })

  it('never waits longer than the bound and never less than a tenth of it', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.double({ min: 0, max: 0.999, noNaN: true }), (attempt, random) => {
        const boundMs = Math.min(30_000, 500 * 2 ** attempt)
        const waitMs = backoffMs(attempt, limits, () => random)
        return waitMs >= boundMs / 10 && waitMs <= boundMs
      }),
    )
  })
})
