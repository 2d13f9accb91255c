import { describe, expect, it } from 'vitest'
import { toSourceBox } from '../../src/detector/frame-geometry.js'
import { letterboxOf, type LetterboxAlign } from '../../src/vision/letterbox.js'
import golden from '../golden/letterbox.json' with { type: 'json' }

const whole = (source: { widthPx: number; heightPx: number }) => ({ x: 0, y: 0, ...source })

describe('toSourceBox', () => {
  it.each(golden.cases)(
    `maps $source.widthPx x $source.heightPx in $input.widthPx x $input.heightPx ($align) like ${golden.madeBy}`,
    (trace) => {
      const { source, boxes, expected } = trace
      const letterbox = letterboxOf(source, trace.input, trace.align as LetterboxAlign)
      expect(letterbox.padXPx).toBe(trace.letterbox.padXPx)
      expect(letterbox.padYPx).toBe(trace.letterbox.padYPx)
      expect(letterbox.scale).toBeCloseTo(trace.letterbox.scale, 12)
      boxes.forEach(([x1 = 0, y1 = 0, x2 = 0, y2 = 0], index) => {
        const [ex1 = 0, ey1 = 0, ex2 = 0, ey2 = 0] = expected[index] ?? []
        const box = toSourceBox(x1, y1, x2, y2, { letterbox, source, regionPx: whole(source) })
        if (ex1 >= ex2 || ey1 >= ey2) {
          expect(box).toBeUndefined()
          return
        }
        expect(box?.x1).toBeCloseTo(ex1, 4)
        expect(box?.y1).toBeCloseTo(ey1, 4)
        expect(box?.x2).toBeCloseTo(ex2, 4)
        expect(box?.y2).toBeCloseTo(ey2, 4)
      })
    },
  )

  it('adds the offset of the analysed region and clips to the frame, not to the region', () => {
    const source = { widthPx: 1920, heightPx: 1080 }
    const regionPx = { x: 1000, y: 200, widthPx: 640, heightPx: 640 }
    const letterbox = letterboxOf(regionPx, { widthPx: 320, heightPx: 320 }, 'center')
    const geometry = { letterbox, regionPx, source }
    expect(toSourceBox(10, 20, 30, 40, geometry)).toEqual({ x1: 1020, y1: 240, x2: 1060, y2: 280 })
    expect(toSourceBox(-10, 20, 30, 40, geometry)).toEqual({ x1: 980, y1: 240, x2: 1060, y2: 280 })
    expect(toSourceBox(300, 20, 600, 40, geometry)?.x2).toBe(1920)
  })

  it('gives nothing for a box outside of the frame, without extent, or not a number', () => {
    const source = { widthPx: 100, heightPx: 100 }
    const geometry = { letterbox: { scale: 1, padXPx: 0, padYPx: 0 }, source, regionPx: whole(source) }
    expect(toSourceBox(120, 10, 140, 20, geometry)).toBeUndefined()
    expect(toSourceBox(10, 10, 10, 20, geometry)).toBeUndefined()
    expect(toSourceBox(Number.NaN, 10, 20, 20, geometry)).toBeUndefined()
    expect(toSourceBox(10, 10, Number.POSITIVE_INFINITY, 20, geometry)).toEqual({
      x1: 10,
      y1: 10,
      x2: 100,
      y2: 20,
    })
  })
})
