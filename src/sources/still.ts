import sharp, { type Sharp } from 'sharp'
import type { CameraConfig } from '../config/camera.js'
import type { FrameFormat } from '../frames/frame.js'
import { letterboxFill, type SizePx } from '../frames/letterbox.js'
import { geometryOf, type FrameGeometry } from './geometry.js'
import { ImageInvalidError } from './source-errors.js'

/** Most pixels of a picture: a small PNG can hold a huge one. */
const mostPixels = 8192 * 8192
const formats = new Set(['jpeg', 'png', 'webp'])
const fill = { r: letterboxFill, g: letterboxFill, b: letterboxFill }

export type Still = Readonly<{ source: SizePx; geometry: FrameGeometry }>

/**
 * Decodes a still picture into a frame of the model's format: the geometry is that of the video path.
 *
 * @param image - bytes of a JPEG, PNG or WebP, or a path.
 * @param rgbHwc - `frameBytes(format)` bytes, overwritten.
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID` for anything that is no sound picture of reasonable size; `rgbHwc` is then unchanged.
 */
export async function decodeStill(
  image: Uint8Array | string,
  camera: Pick<CameraConfig, 'region' | 'maxWidthPx'>,
  format: FrameFormat,
  rgbHwc: ArrayBuffer,
): Promise<Still> {
  const options = { limitInputPixels: mostPixels, failOn: 'error', sequentialRead: true } as const
  try {
    const source = await sourceSize(sharp(image, options))
    const geometry = geometryOf(source, camera, format)
    const { regionPx, scaled, letterbox } = geometry
    const pixels = await sharp(image, options)
      .autoOrient()
      .extract({ left: regionPx.x, top: regionPx.y, width: regionPx.widthPx, height: regionPx.heightPx })
      .resize(scaled.widthPx, scaled.heightPx, { fit: 'fill', kernel: 'linear' })
      .flatten({ background: fill })
      .toColourspace('srgb')
      .extend({
        top: letterbox.padYPx,
        left: letterbox.padXPx,
        bottom: format.input.heightPx - scaled.heightPx - letterbox.padYPx,
        right: format.input.widthPx - scaled.widthPx - letterbox.padXPx,
        background: fill,
      })
      .removeAlpha()
      .raw()
      .toBuffer()
    new Uint8Array(rgbHwc).set(pixels)
    return { source, geometry }
  } catch (error) {
    if (error instanceof ImageInvalidError) throw error
    throw new ImageInvalidError(error instanceof Error ? error.message : String(error), error)
  }
}

async function sourceSize(image: Sharp): Promise<SizePx> {
  const { format, autoOrient, pages } = await image.metadata()
  if (!format || !formats.has(format)) throw new ImageInvalidError(`it is ${format ?? 'of no known format'}`)
  if (pages !== undefined && pages > 1) throw new ImageInvalidError('it is animated')
  return { widthPx: autoOrient.width, heightPx: autoOrient.height }
}
