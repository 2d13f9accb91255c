import { inTurns } from '../lifecycle/in-turns.js'
import { scanJpeg } from './jpeg-scan.js'
import { ImageInvalidError } from './source-errors.js'

/** What a decoder does not go on after. */
type FailOn = 'none' | 'error' | 'warning'
/** Pixels of a picture, packed, three bytes each; rejects with the decoder's words. */
type Decode = (image: Uint8Array, failOn: FailOn) => Promise<Uint8Array>
type Decoded = Readonly<{ pixels: Uint8Array; damage?: string }>

/**
 * Decodes a picture as far as it goes, and says what is wrong with it.
 *
 * @param damaged - `refused`: what the decoder itself finds wrong is not shown.
 * @throws ImageInvalidError `GANTRY_IMAGE_INVALID` where it is refused, or nothing of it can be decoded
 */
export async function decodedPixels(
  image: Uint8Array,
  damaged: 'shown' | 'refused',
  decode: Decode,
): Promise<Decoded> {
  const isJpeg = image[0] === 0xff && image[1] === 0xd8
  const isEnded = image.at(-2) === 0xff && image.at(-1) === 0xd9
  const scan = isJpeg && (damaged === 'shown' || !isEnded) ? await inTurns(scanJpeg(image)) : undefined
  const ended = scan?.ends === false ? withEnd(image) : image
  if (damaged === 'refused') {
    const isWhole = scan?.judged === true && scan.damage === undefined
    return { pixels: await decodedOr(decode, isWhole ? ended : image, 'error') }
  }
  if (scan?.damage !== undefined) return decodedInPart(decode, ended, scan.damage)
  if (scan?.judged === true) return { pixels: await decodedOr(decode, ended, 'none') }
  try {
    return { pixels: await decode(ended, 'warning') }
  } catch (error) {
    return decodedInPart(decode, ended, `it cannot be decoded whole: ${decoderWords(error)}`)
  }
}

/** The first line of what a decoder has against a picture. */
export function decoderWords(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.split('\n')[0] ?? message
}

async function decodedInPart(decode: Decode, image: Uint8Array, damage: string): Promise<Decoded> {
  const pixels = await decodedOr(decode, image, 'none')
  const isBlank = pixels.every((value, index) => value === pixels[index % 3])
  if (isBlank) throw new ImageInvalidError(`${damage}, and nothing of it can be decoded`)
  return { pixels, damage }
}

async function decodedOr(decode: Decode, image: Uint8Array, failOn: FailOn): Promise<Uint8Array> {
  try {
    return await decode(image, failOn)
  } catch (error) {
    throw new ImageInvalidError(decoderWords(error), error)
  }
}

/** Decoders take a JPEG without the marker of its end for one that was cut off. */
function withEnd(jpeg: Uint8Array): Uint8Array {
  return Buffer.concat([jpeg, Buffer.from(jpeg.at(-1) === 0xff ? [0xd9] : [0xff, 0xd9])])
}
