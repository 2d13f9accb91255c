import type { SizePx } from '../vision/letterbox.js'
import { channelClosed, openByteChannel, type ByteReader } from './byte-channel.js'
import { parseDecoderLine } from './decoder-log.js'
import { DecoderProcess } from './decoder-process.js'
import { whyEnded, type Failure } from './failure-reason.js'
import { mostPictureBytes, pictureArguments, type DecoderInput } from './ffmpeg-command.js'
import type { SetAspect } from './pixel-aspect.js'

const chunkBytes = 256 * 1024
/** Of the JPEGs of whole pictures. */
export const wholeQuality = 92

/** A whole picture of a camera as it is shown, with square pixels. */
export type WholePicture = Readonly<{ jpeg: Uint8Array; size: SizePx }>

export type WholeInput = Readonly<{
  input: DecoderInput
  /** What stands between the decoder and its input. */
  gate: Readonly<{ problem: Failure | undefined; plain(text: string): string }> | undefined
}>

/**
 * One whole picture of an input, by a decoder that ends with it: the first key frame, or the picture at a place of a file.
 *
 * @param atS - of a file.
 * @returns why there is none, which may hold what the camera said.
 * @throws what the signal aborts with.
 */
export async function takeWholePicture(
  { input, gate }: WholeInput,
  camera: SetAspect,
  signal: AbortSignal,
  atS?: number,
): Promise<WholePicture | Failure> {
  const pixels = new Collected()
  const { writeEnd, readEnd } = await openByteChannel(pixels)
  const drained = channelClosed(readEnd)
  const sizes: SizePx[] = []
  let decoder: DecoderProcess
  try {
    signal.throwIfAborted()
    decoder = new DecoderProcess(pictureArguments(input, camera, atS), writeEnd, (text) => {
      const line = parseDecoderLine(text)
      if (line.kind === 'size') sizes.push(line.source)
    })
  } catch (error) {
    readEnd.destroy()
    throw error
  } finally {
    writeEnd.destroy()
  }
  const stop = () => decoder.stop()
  signal.addEventListener('abort', stop, { once: true })
  const end = await decoder.ended
  signal.removeEventListener('abort', stop)
  await drained
  readEnd.destroy()
  signal.throwIfAborted()
  const size = sizes.at(-1)
  const rgb = pixels.bytes()
  if (size === undefined || rgb.length !== size.widthPx * size.heightPx * 3) {
    const failure = whyEnded(end, gate?.problem, input.kind === 'file')
    return { ...failure, reason: gate?.plain(failure.reason) ?? failure.reason }
  }
  const { default: sharp } = await import('../lifecycle/sharp.js')
  const raw = { width: size.widthPx, height: size.heightPx, channels: 3 } as const
  return { size, jpeg: await sharp(rgb, { raw }).jpeg({ quality: wholeQuality }).toBuffer() }
}

/** What a channel delivers, up to the size of the largest picture. */
class Collected implements ByteReader {
  readonly #chunks: Uint8Array[] = []
  #space = new Uint8Array(chunkBytes)
  #length = 0

  space(): Uint8Array {
    if (this.#space.length === 0) this.#space = new Uint8Array(chunkBytes)
    return this.#space
  }

  filled(bytes: number): boolean {
    // What is more is no picture: it is read, and not kept.
    if (this.#length > mostPictureBytes) return true
    this.#chunks.push(this.#space.subarray(0, bytes))
    this.#space = this.#space.subarray(bytes)
    this.#length += bytes
    return true
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }
}
