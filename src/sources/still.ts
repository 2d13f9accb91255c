import type sharp from 'sharp'
import type { Metadata } from 'sharp'
import type { CameraConfig } from '../config/camera.js'
import { letterboxFill, scaledSizePx, type SizePx } from '../vision/letterbox.js'
import { mostPicturePx } from './ffmpeg-command.js'
import { geometryOf } from './geometry.js'
import { shownSize, toldAspect, unbelievedAspect, type SentPicture, type SetAspect } from './pixel-aspect.js'
import { stillAspect } from './still-aspect.js'
import type { SourceDeps } from './source-deps.js'
import { ImageInvalidError, ImageTooLargeError } from './source-errors.js'
import { decodedPixels, decoderWords } from './still-damage.js'

/** Most pixels of a picture: a PNG of 748 kB can hold 768 MB of them. */
const mostPixels = 8192 * 8192
const formats: readonly string[] = ['jpeg', 'png']
/** Of a camera that is asked for them: services that show cameras give WebP as well. */
export const askedFormats: readonly string[] = [...formats, 'webp']
const fill = { r: letterboxFill, g: letterboxFill, b: letterboxFill }
const options = { limitInputPixels: mostPixels, sequentialRead: true } as const

/** A letterboxed picture; the buffer is from the pool and belongs to the caller. */
export type Still = Readonly<{
  rgbHwc: ArrayBuffer
  /** Turned as its EXIF orientation says. */
  sent: SentPicture
  /** Why its pixels are taken for square though it says something else; absent where it is believed. */
  unbelieved?: string
  /** What is wrong with it, one clause; absent where it is whole as far as can be told. */
  damage?: string
}>

/** `shown`: as much of it as can be decoded, with what is wrong; `refused`: where the decoder finds something wrong. */
export type DamagedStills = 'shown' | 'refused'

export type StillRules = Readonly<{
  damaged?: DamagedStills
  /** Formats that are taken; JPEG and PNG where it is absent. */
  known?: readonly string[]
}>

/**
 * Decodes a still picture into a frame of the model's format. The geometry is that of the video path; only the resampling differs.
 *
 * @param image - one JPEG or PNG, or what `known` names. Borrowed for the call. That nothing marks its end is no damage.
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function decodeStill(
  image: Uint8Array,
  camera: Pick<CameraConfig, 'region' | 'maxWidthPx'> & SetAspect,
  { format, pool }: Pick<SourceDeps, 'format' | 'pool'>,
  { damaged = 'refused', known = formats }: StillRules = {},
): Promise<Still> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const { sent, unbelieved } = await sentStill(sharp, image, camera, {
    known,
    failOn: damaged === 'shown' ? 'none' : 'error',
  })
  const { cutPx, scaled, letterbox } = geometryOf(sent, camera, format)
  const { pixels, damage } = await decodedPixels(image, damaged, (bytes, failOn) =>
    sharp(bytes, { ...options, failOn })
      .autoOrient()
      .extract({ left: cutPx.x, top: cutPx.y, width: cutPx.widthPx, height: cutPx.heightPx })
      .resize(scaled.widthPx, scaled.heightPx, { fit: 'fill', kernel: 'linear' })
      .flatten({ background: fill })
      .toColourspace('srgb')
      .raw({ depth: 'uchar' })
      .toBuffer(),
  )
  const rgbHwc = pool.take()
  const frame = new Uint8Array(rgbHwc).fill(letterboxFill)
  const rowBytes = scaled.widthPx * 3
  for (let y = 0; y < scaled.heightPx; y += 1) {
    const at = ((letterbox.padYPx + y) * format.input.widthPx + letterbox.padXPx) * 3
    frame.set(pixels.subarray(y * rowBytes, (y + 1) * rowBytes), at)
  }
  const told = { ...(unbelieved !== undefined && { unbelieved }), ...(damage !== undefined && { damage }) }
  return { rgbHwc, sent, ...told }
}

/**
 * The size of a picture in its own pixels, turned as it is shown, without decoding it.
 *
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function stillSize(image: Uint8Array): Promise<SizePx> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const { widthPx, heightPx } = await sizeOf(sharp, image, { known: formats, failOn: 'error' })
  return { widthPx, heightPx }
}

/**
 * A picture as it is shown, as an upright JPEG; the same bytes where it is one already. One whose pixels are not square has sides of
 * {@link mostPicturePx} at most.
 *
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID`, ImageTooLargeError `GANTRY_TOO_LARGE`
 */
export async function stillAsJpeg(
  image: Uint8Array,
  camera: SetAspect,
  quality: number,
  known: readonly string[],
): Promise<Readonly<{ jpeg: Uint8Array; size: SizePx }>> {
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const { sent, isUpright } = await sentStill(sharp, image, camera, { known, failOn: 'error' })
  const shown = shownSize(sent)
  const isSquare = sent.pixelAspect === 1
  if (isUpright && isSquare) return { jpeg: image, size: shown }
  const limit = { widthPx: mostPicturePx, heightPx: mostPicturePx }
  const fits = isSquare || Math.max(shown.widthPx, shown.heightPx) <= mostPicturePx
  const size = fits ? shown : scaledSizePx(shown, limit)
  const upright = sharp(image, { ...options, failOn: 'error' })
    .autoOrient()
    .flatten({ background: fill })
  const wide = isSquare ? upright : upright.resize(size.widthPx, size.heightPx, { fit: 'fill' })
  try {
    return { jpeg: await wide.jpeg({ quality }).toBuffer(), size }
  } catch (error) {
    throw new ImageInvalidError(decoderWords(error), error)
  }
}

/** Formats that are taken, and what the decoder does not go on after. */
type Taken = Readonly<{ known: readonly string[]; failOn: 'none' | 'error' }>

type SentStill = Readonly<{
  sent: SentPicture
  unbelieved: string | undefined
  /** It is a JPEG that nothing turns. */
  isUpright: boolean
}>

async function sentStill(
  library: typeof sharp,
  image: Uint8Array,
  camera: SetAspect,
  taken: Taken,
): Promise<SentStill> {
  const { turned, isUpright, ...size } = await sizeOf(library, image, taken)
  const signalled = stillAspect(image)
  const { pixelAspect, isUnbelieved } = toldAspect(
    size,
    camera,
    signalled && turned ? 1 / signalled : signalled,
  )
  const unbelieved = isUnbelieved ? unbelievedAspect(camera, size) : undefined
  return { sent: { ...size, pixelAspect }, unbelieved, isUpright }
}

/** Checked before a pixel is decoded. `turned`: its sides have changed places; `isUpright`: it is a JPEG that nothing turns. */
async function sizeOf(
  library: typeof sharp,
  image: Uint8Array,
  { known, failOn }: Taken,
): Promise<SizePx & Readonly<{ turned: boolean; isUpright: boolean }>> {
  const head = await headOf(library, image, failOn)
  if (!known.includes(head.format)) throw new ImageInvalidError(`it is ${head.format}, not JPEG or PNG`)
  if (head.width * head.height > mostPixels)
    throw new ImageTooLargeError(`${head.width} x ${head.height} pixels, at most ${mostPixels} are decoded`)
  const { autoOrient, orientation = 1 } = head
  const isUpright = head.format === 'jpeg' && orientation === 1
  return { widthPx: autoOrient.width, heightPx: autoOrient.height, turned: orientation > 4, isUpright }
}

async function headOf(library: typeof sharp, image: Uint8Array, failOn: 'none' | 'error'): Promise<Metadata> {
  try {
    return await library(image, { ...options, failOn, limitInputPixels: false }).metadata()
  } catch (error) {
    throw new ImageInvalidError(decoderWords(error), error)
  }
}
