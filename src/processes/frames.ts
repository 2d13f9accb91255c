import { InternalError } from '../errors.js'

/**
 * How processes talk: frames, one behind the other. A frame is the length of its body as uint32, its kind as one byte, and the body.
 * Numbers are little-endian.
 */
export const frameKinds = { message: 0, bytes: 1 } as const

/** Before each body. */
export const frameHeadBytes = 5

/** Bytes of a body; the largest are pages of metrics and pictures, of some megabytes. */
export const mostBodyBytes = 64 * 1024 ** 2

/** What came is not what was agreed on. */
export class FrameError extends InternalError {
  constructor(message: string) {
    super(message)
    this.name = 'FrameError'
  }
}

/** Writes the head into the first bytes of `to`. @throws FrameError for a body that nobody would take. */
export function writeFrameHead(to: Buffer, kind: number, bodyBytes: number): void {
  if (bodyBytes > mostBodyBytes) throw new FrameError(`a frame of ${bodyBytes} bytes`)
  to.writeUInt32LE(bodyBytes)
  to[4] = kind
}

/** Frames out of bytes as they come, however they are cut. */
export class FrameSplitter {
  /** Of a frame that is not there yet. */
  #parts: Buffer[] = []
  #bytes = 0
  #wanted = frameHeadBytes

  /** @param frame - its body stands as long as it is kept, and keeps the bytes that came with it. */
  constructor(readonly frame: (kind: number, body: Buffer) => void) {}

  /** The bytes end inside of a frame. */
  get isTorn(): boolean {
    return this.#bytes > 0
  }

  /** @throws FrameError for what can be no frame; what `frame` throws. Nothing can be read after that. */
  read(chunk: Buffer): void {
    this.#parts.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < this.#wanted) return
    const bytes = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#bytes)
    let at = 0
    for (;;) {
      const left = bytes.length - at
      this.#wanted = left < frameHeadBytes ? frameHeadBytes : frameHeadBytes + bodyBytesOf(bytes, at)
      if (left < this.#wanted) break
      const end = at + this.#wanted
      this.frame(bytes[at + 4] ?? 0, bytes.subarray(at + frameHeadBytes, end))
      at = end
    }
    this.#parts = at < bytes.length ? [bytes.subarray(at)] : []
    this.#bytes = bytes.length - at
  }
}

function bodyBytesOf(bytes: Buffer, at: number): number {
  const bodyBytes = bytes.readUInt32LE(at)
  if (bodyBytes > mostBodyBytes) throw new FrameError(`a frame of ${bodyBytes} bytes`)
  return bodyBytes
}
