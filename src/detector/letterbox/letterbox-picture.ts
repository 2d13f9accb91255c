import { letterboxFill, letterboxOf, scaledSizePx, type SizePx } from '../../vision/letterbox.js'
import type { LetterboxPlan } from './letterbox-parameters.js'

const background = { r: letterboxFill, g: letterboxFill, b: letterboxFill }

/** A picture fitted into the input of a model, and where it lies there. */
export type Letterboxed = Readonly<{
  /** RGB bytes `[height, width, 3]` of the plan's size. */
  rgbHwc: Uint8Array
  /** Scale, padding before the picture in x and y, width and height of the picture. */
  geometry: readonly number[]
}>

/**
 * Scales and pads a picture as the camera path does, by sharp's own threads: the loop stays free and the picture is not copied.
 *
 * @param image - uint8 `[heightPx, widthPx, 3]`, RGB. Borrowed until the promise settles.
 */
export async function letterboxPicture(
  image: Uint8Array,
  source: SizePx,
  { size, align }: LetterboxPlan,
): Promise<Letterboxed> {
  const { scale, padXPx, padYPx } = letterboxOf(source, size, align)
  const scaled = scaledSizePx(source, size)
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const rgbHwc = await sharp(image, { raw: { width: source.widthPx, height: source.heightPx, channels: 3 } })
    .resize(scaled.widthPx, scaled.heightPx, { fit: 'fill', kernel: 'linear' })
    .extend({
      left: padXPx,
      top: padYPx,
      right: size.widthPx - scaled.widthPx - padXPx,
      bottom: size.heightPx - scaled.heightPx - padYPx,
      background,
    })
    .raw({ depth: 'uchar' })
    .toBuffer()
  return { rgbHwc, geometry: [scale, padXPx, padYPx, source.widthPx, source.heightPx] }
}
