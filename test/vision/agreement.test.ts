import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agreementOf, joinedAgreement } from '../../src/vision/agreement.js'
import type { Detection } from '../../src/vision/detection.js'

function found(label: string, x1: number, widthPx = 10, score = 0.9): Detection {
  return { label, score, boxPx: { x1, y1: 0, x2: x1 + widthPx, y2: 10 } }
}

const detection = fc
  .record({
    label: fc.constantFrom('helmet', 'head'),
    x1: fc.integer({ min: 0, max: 30 }),
    widthPx: fc.integer({ min: 1, max: 20 }),
  })
  .map(({ label, x1, widthPx }) => found(label, x1, widthPx))
const pair = fc.record({
  before: fc.array(detection, { maxLength: 6 }),
  after: fc.array(detection, { maxLength: 6 }),
})

describe('agreementOf', () => {
  it('is 1 for the same boxes, whatever their scores', () => {
    const before = [found('helmet', 0), found('head', 40)]
    const after = [found('head', 40, 10, 0.4), found('helmet', 0, 10, 0.5)]
    expect(agreementOf([{ before, after }])).toEqual({
      frames: 1,
      before: 2,
      after: 2,
      matched: 2,
      agreement: 1,
    })
  })

  it('counts both what is missing and what is new', () => {
    const before = [found('helmet', 0), found('helmet', 40), found('helmet', 80)]
    expect(agreementOf([{ before, after: [found('helmet', 0)] }]).agreement).toBe(0.5)
    expect(agreementOf([{ before: [found('helmet', 0)], after: before }]).agreement).toBe(0.5)
  })

  it('wants the same label, and an IoU of at least 0.5', () => {
    const of = (after: Detection) => agreementOf([{ before: [found('helmet', 0)], after: [after] }]).agreement
    expect(of(found('head', 0))).toBe(0)
    // 5 of 10 px: exactly a half.
    expect(of(found('helmet', 0, 5))).toBe(1)
    expect(of(found('helmet', 0, 4.9))).toBe(0)
    expect(of(found('helmet', 30))).toBe(0)
  })

  it('pairs one to one, the largest overlap first', () => {
    const near = { before: [found('helmet', 0)], after: [found('helmet', 1), found('helmet', 2)] }
    expect(agreementOf([near]).matched).toBe(1)
    // The first of `before` overlaps both, and must leave the one that the second needs.
    const before = [found('helmet', 0, 12), found('helmet', 2, 12)]
    const after = [found('helmet', 2, 12), found('helmet', -1, 12)]
    expect(agreementOf([{ before, after }]).matched).toBe(2)
  })

  it('counts all pictures together, and lets empty ones speak for neither', () => {
    const empty = { before: [], after: [] }
    const missed = { before: [found('helmet', 0)], after: [] }
    expect(agreementOf([empty, empty, empty, missed])).toMatchObject({ frames: 4, agreement: 0 })
    const many = {
      before: [0, 20, 40].map((x) => found('head', x)),
      after: [0, 20, 40].map((x) => found('head', x)),
    }
    expect(agreementOf([many, missed]).agreement).toBeCloseTo(6 / 7)
  })

  it('is 1 where neither found anything, and null without pictures', () => {
    expect(agreementOf([{ before: [], after: [] }]).agreement).toBe(1)
    expect(agreementOf([]).agreement).toBeNull()
  })

  it('is within 0..1, and never pairs more than either found', () => {
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 4 }), (pairs) => {
        const { before, after, matched, agreement } = agreementOf(pairs)
        expect(matched).toBeLessThanOrEqual(Math.min(before, after))
        expect(agreement ?? 0).toBeGreaterThanOrEqual(0)
        expect(agreement ?? 0).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('joinedAgreement', () => {
  it('is that of all pictures at once', () => {
    fc.assert(
      fc.property(fc.array(pair), fc.array(pair), (some, others) => {
        expect(joinedAgreement([agreementOf(some), agreementOf(others)])).toEqual(
          agreementOf([...some, ...others]),
        )
      }),
    )
  })

  it('is null without parts', () => {
    expect(joinedAgreement([]).agreement).toBeNull()
  })
})
