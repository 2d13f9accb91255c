import type { Metadata } from 'sharp'
import { letterboxFill, type SizePx } from '../../vision/letterbox.js'
import { ServingError } from '../../tensors/serving-error.js'

/** Most pixels of a picture: a PNG of 748 kB can hold 768 MB of them. */
const mostPixels = 8192 * 8192
const formats = new Set(['jpeg', 'png'])
const fill = { r: letterboxFill, g: letterboxFill, b: letterboxFill }
const options = { limitInputPixels: mostPixels, failOn: 'error', sequentialRead: true } as const

/** RGB bytes `[heightPx, widthPx, 3]`. */
export type DecodedPicture = SizePx & Readonly<{ rgbHwc: Uint8Array }>

/**
 * Decodes a picture in sharp's own threads, turned as its EXIF orientation says; transparency becomes grey.
 *
 * @param image - one JPEG or PNG. Borrowed until the promise settles.
 * @throws ServingError `INVALID_ARG` for other formats, damage, and more than 67 million pixels, before a pixel is decoded.
 */
export async function decodePicture(image: Uint8Array): Promise<DecodedPicture> {
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const head = await readable(() => sharp(image, { ...options, limitInputPixels: false }).metadata())
  check(head)
  const { data, info } = await readable(() =>
    sharp(image, options)
      .autoOrient()
      .flatten({ background: fill })
      .toColourspace('srgb')
      .raw({ depth: 'uchar' })
      .toBuffer({ resolveWithObject: true }),
  )
  if (info.channels !== 3) throw refused(`it has ${info.channels} channels after decoding`)
  return { rgbHwc: data, widthPx: info.width, heightPx: info.height }
}

function check({ format, width, height }: Metadata): void {
  if (!formats.has(format)) throw refused(`it is ${format}, not JPEG or PNG`)
  if (width * height > mostPixels)
    throw refused(`it has ${width} x ${height} pixels, at most ${mostPixels} are decoded`)
}

async function readable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw refused((error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '')
  }
}

function refused(problem: string): ServingError {
  return new ServingError('INVALID_ARG', `image_decode: the picture cannot be decoded: ${problem}`)
}
