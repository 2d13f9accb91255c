import { letterboxPicture } from '../../detector/letterbox/letterbox-picture.js'
import { geometryOf } from '../../sources/geometry.js'
import { decodeStill, type Still } from '../../sources/still.js'
import type { FrameGeometry } from '../../detector/frame-geometry.js'
import type { FrameFormat } from '../../vision/frame.js'
import type { FramePool } from '../../vision/frame-pool.js'
import type { Picture } from './picture-scorer.js'

/** Pictures are whole: no region, no cap. Boxes are in the pixels of their files, as labels are, whatever shape those have. */
const whole = { sampleAspectRatio: '1:1' } as const

/**
 * A picture as a detector takes it. Files come as pushed pictures do, pixels as those of API clients.
 *
 * @returns the buffer is from the pool and belongs to the caller.
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function letterboxedFrame(
  picture: Picture,
  format: FrameFormat,
  pool: FramePool,
): Promise<Pick<Still, 'rgbHwc'> & FrameGeometry> {
  if (picture.kind === 'file') {
    const { rgbHwc, sent } = await decodeStill(picture.bytes, whole, { format, pool })
    return { rgbHwc, ...geometryOf(sent, {}, format) }
  }
  const { widthPx, heightPx } = picture
  const source = { widthPx, heightPx }
  const letterboxed = await letterboxPicture(picture.rgbHwc, source, {
    layout: 'uint8-nhwc',
    channels: 'rgb',
    range: '0-255',
    size: format.input,
    align: format.align,
  })
  const rgbHwc = pool.take()
  new Uint8Array(rgbHwc).set(letterboxed.rgbHwc)
  return { rgbHwc, ...geometryOf(source, {}, format) }
}
