import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { letterboxOf, scaledSizePx } from '../../src/vision/letterbox.js'

const size = fc.record({
  widthPx: fc.integer({ min: 16, max: 4_096 }),
  heightPx: fc.integer({ min: 16, max: 4_096 }),
})

describe('letterboxOf', () => {
  it('fits 720p into a square of 640 with even bands above and below', () => {
    const letterbox = letterboxOf({ widthPx: 1280, heightPx: 720 }, { widthPx: 640, heightPx: 640 }, 'center')
    expect(letterbox).toEqual({ scale: 0.5, padXPx: 0, padYPx: 140 })
  })

  it('pads at the right and bottom only when aligned top-left', () => {
    const letterbox = letterboxOf(
      { widthPx: 720, heightPx: 1280 },
      { widthPx: 416, heightPx: 416 },
      'top-left',
    )
    expect(letterbox).toEqual({ scale: 0.325, padXPx: 0, padYPx: 0 })
  })

  it('keeps the whole picture inside the input', () => {
    fc.assert(
      fc.property(size, (source) => {
        const input = { widthPx: 640, heightPx: 640 }
        const { padXPx, padYPx } = letterboxOf(source, input, 'center')
        const scaled = scaledSizePx(source, input)
        expect(padXPx + scaled.widthPx).toBeLessThanOrEqual(640)
        expect(padYPx + scaled.heightPx).toBeLessThanOrEqual(640)
        expect(padXPx).toBeGreaterThanOrEqual(0)
        expect(padYPx).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
