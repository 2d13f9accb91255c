import { describe, expect, it } from 'vitest'
import { pictureIn, refit } from '../../../src/processes/engine/refit.js'
import { type FrameFormat, frameBytes } from '../../../src/vision/frame.js'
import { letterboxOf } from '../../../src/vision/letterbox.js'
import { grey } from './frames.js'

const source = { widthPx: 320, heightPx: 180 }
const format = (sidePx: number, align: FrameFormat['align'] = 'center'): FrameFormat => ({
  input: { widthPx: sidePx, heightPx: sidePx },
  align,
})

/** A frame of 64 x 64 whose picture is white, in black padding. */
function framed() {
  const letterbox = letterboxOf(source, format(64).input, 'center')
  const pixels = new Uint8Array(frameBytes(format(64)))
  pixels.fill(255, letterbox.padYPx * 64 * 3, (letterbox.padYPx + 36) * 64 * 3)
  const regionPx = { x: 0, y: 0, ...source }
  return grey(1, 0, 0, { source, regionPx, letterbox, rgbHwc: pixels.buffer })
}

describe('refit', () => {
  it.each([
    ['larger', format(128), 28, 72],
    ['smaller', format(32), 7, 18],
    ['of another alignment', format(64, 'top-left'), 0, 36],
  ])('fits the picture of a frame into an input that is %s', async (_, to, top, height) => {
    const into = new ArrayBuffer(frameBytes(to))
    const fitted = await refit(framed(), {}, [format(64), to], into)
    expect(fitted.rgbHwc).toBe(into)
    expect(fitted.letterbox).toEqual(letterboxOf(source, to.input, to.align))
    const pixels = new Uint8Array(into)
    const { widthPx, heightPx } = to.input
    const rows = Array.from({ length: heightPx }, (__, y) => pixels[y * widthPx * 3])
    expect(rows).toEqual(
      Array.from({ length: heightPx }, (__, y) => (y >= top && y < top + height ? 255 : 114)),
    )
  })

  it('keeps the part of the picture that the frame shows', async () => {
    const regionPx = { x: 160, y: 0, widthPx: 160, heightPx: 180 }
    const letterbox = letterboxOf(regionPx, format(64).input, 'center')
    const frame = { ...framed(), regionPx, letterbox }
    const to = format(128)
    const fitted = await refit(frame, {}, [format(64), to], new ArrayBuffer(frameBytes(to)))
    expect(fitted).toMatchObject({ source, regionPx, letterbox: letterboxOf(regionPx, to.input, to.align) })
  })

  it('keeps the width that the camera is capped at', async () => {
    const to = format(128)
    const fitted = await refit(
      framed(),
      { maxWidthPx: 96 },
      [format(64), to],
      new ArrayBuffer(frameBytes(to)),
    )
    expect(fitted.letterbox).toEqual({ scale: 0.3, padXPx: 16, padYPx: 37 })
    expect(pictureIn(fitted, to)).toEqual({ widthPx: 96, heightPx: 54 })
  })
})
