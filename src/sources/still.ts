import type sharp from 'sharp'
import type { Metadata, Sharp } from 'sharp'
import type { CameraConfig } from '../config/camera.js'
import { letterboxFill, type SizePx } from '../vision/letterbox.js'
import { geometryOf } from './geometry.js'
import type { SourceDeps } from './source-deps.js'
import { ImageInvalidError, ImageTooLargeError } from './source-errors.js'

/** Most pixels of a picture: a PNG of 748 kB can hold 768 MB of them. */
const mostPixels = 8192 * 8192
const formats: readonly string[] = ['jpeg', 'png']
/** Of a camera that is asked for them: services that show cameras give WebP as well. */
export const askedFormats: readonly string[] = [...formats, 'webp']
const fill = { r: letterboxFill, g: letterboxFill, b: letterboxFill }
const options = { limitInputPixels: mostPixels, failOn: 'error', sequentialRead: true } as const

/** A letterboxed picture; the buffer is from the pool and belongs to the caller. */
export type Still = Readonly<{ rgbHwc: ArrayBuffer; source: SizePx }>

/**
 * Decodes a still picture into a frame of the model's format. The geometry is that of the video path; only the resampling differs.
 *
 * @param image - one JPEG or PNG. Borrowed for the call.
 * @param known - formats that are taken.
 * @returns the frame and the picture's own size, turned as its EXIF orientation says.
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function decodeStill(
  image: Uint8Array,
  camera: Pick<CameraConfig, 'region' | 'maxWidthPx'>,
  { format, pool }: Pick<SourceDeps, 'format' | 'pool'>,
  known: readonly string[] = formats,
): Promise<Still> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const source = await sizeOf(sharp, image, known)
  const { regionPx, scaled, letterbox } = geometryOf(source, camera, format)
  const pixels = await decoded(
    sharp(image, options)
      .autoOrient()
      .extract({ left: regionPx.x, top: regionPx.y, width: regionPx.widthPx, height: regionPx.heightPx })
      .resize(scaled.widthPx, scaled.heightPx, { fit: 'fill', kernel: 'linear' })
      .flatten({ background: fill })
      .toColourspace('srgb'),
  )
  const rgbHwc = pool.take()
  const frame = new Uint8Array(rgbHwc).fill(letterboxFill)
  const rowBytes = scaled.widthPx * 3
  for (let y = 0; y < scaled.heightPx; y += 1) {
    const at = ((letterbox.padYPx + y) * format.input.widthPx + letterbox.padXPx) * 3
    frame.set(pixels.subarray(y * rowBytes, (y + 1) * rowBytes), at)
  }
  return { rgbHwc, source }
}

/**
 * The size of a picture as it is shown, without decoding it.
 *
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function stillSize(image: Uint8Array, known = formats): Promise<SizePx> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  return sizeOf(sharp, image, known)
}

/**
 * A picture as an upright JPEG; the same bytes where it is one already.
 *
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`
 */
export async function stillAsJpeg(image: Uint8Array, quality: number): Promise<Uint8Array> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const { format, orientation = 1 } = await headOf(sharp, image)
  if (format === 'jpeg' && orientation === 1) return image
  try {
    return await sharp(image, options).autoOrient().flatten({ background: fill }).jpeg({ quality }).toBuffer()
  } catch (error) {
    throw new ImageInvalidError(firstLine(error), error)
  }
}

/** The size as it is shown, checked before a pixel is decoded. */
async function sizeOf(library: typeof sharp, image: Uint8Array, known: readonly string[]): Promise<SizePx> {
  const head = await headOf(library, image)
  if (!known.includes(head.format)) throw new ImageInvalidError(`it is ${head.format}, not JPEG or PNG`)
  if (head.width * head.height > mostPixels)
    throw new ImageTooLargeError(`${head.width} x ${head.height} pixels, at most ${mostPixels} are decoded`)
  return { widthPx: head.autoOrient.width, heightPx: head.autoOrient.height }
}

async function headOf(library: typeof sharp, image: Uint8Array): Promise<Metadata> {
  try {
    return await library(image, { ...options, limitInputPixels: false }).metadata()
  } catch (error) {
    throw new ImageInvalidError(firstLine(error), error)
  }
}

async function decoded(pipeline: Sharp): Promise<Buffer> {
  try {
    return await pipeline.raw({ depth: 'uchar' }).toBuffer()
  } catch (error) {
    throw new ImageInvalidError(firstLine(error), error)
  }
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.split('\n')[0] ?? message
}
