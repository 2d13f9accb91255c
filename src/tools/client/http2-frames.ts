import { Http2SyntaxError } from './http2-syntax-error.js'

/** RFC 9113, 6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const frameFlags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const

export const http2HeadBytes = 9
/** Of a frame that comes: those that are no data are kept until they are whole. */
export const mostFrameBytes = 1024 ** 2

const nothing = Buffer.alloc(0)

/** Takes what comes over a connection. */
export interface FrameSink {
  /**
   * A part of the data of a stream.
   *
   * @param flowBytes - what counts for the windows: padding does as well.
   * @param isEnd - the stream ends with it.
   */
  data(stream: number, bytes: Buffer, flowBytes: number, isEnd: boolean): void
  /** A frame of another kind, whole. `payload` is borrowed. */
  frame(type: number, flags: number, stream: number, payload: Buffer): void
}

/** Makes frames of what comes over a connection; data are given on as they come. */
export class Http2FrameReader {
  #pending: Buffer = nothing
  /** Of the data frame that has not come whole. */
  #left = 0
  #stream = 0
  #endsStream = false

  constructor(readonly sink: FrameSink) {}

  /** @throws Http2SyntaxError, and what the sink throws */
  read(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = nothing
    let at = 0
    while (at < bytes.length) {
      const next = this.#left > 0 ? this.#dataAt(bytes, at) : this.#frameAt(bytes, at)
      if (next < 0) break
      at = next
    }
    if (at < bytes.length) this.#pending = bytes.subarray(at)
  }

  /** Where the next frame begins, -1 while this one is not whole. */
  #frameAt(bytes: Buffer, at: number): number {
    const start = at + http2HeadBytes
    if (start > bytes.length) return -1
    const length = bytes.readUIntBE(at, 3)
    const type = bytes[at + 3]!
    const flags = bytes[at + 4]!
    const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff
    if (length > mostFrameBytes) throw new Http2SyntaxError('a frame of HTTP/2 is longer than it may be')
    if (type === frameTypes.data && (flags & frameFlags.padded) === 0) {
      this.#stream = stream
      this.#endsStream = (flags & frameFlags.endStream) !== 0
      this.#left = length
      if (length === 0) this.sink.data(stream, nothing, 0, this.#endsStream)
      return start
    }
    const end = start + length
    if (end > bytes.length) return -1
    const payload = bytes.subarray(start, end)
    if (type === frameTypes.data)
      this.sink.data(stream, withoutPadding(flags, payload), length, (flags & frameFlags.endStream) !== 0)
    else this.sink.frame(type, flags, stream, payload)
    return end
  }

  #dataAt(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#left, bytes.length)
    this.#left -= end - at
    this.sink.data(this.#stream, bytes.subarray(at, end), end - at, this.#endsStream && this.#left === 0)
    return end
  }
}

/** @throws Http2SyntaxError */
export function withoutPadding(flags: number, payload: Buffer): Buffer {
  if ((flags & frameFlags.padded) === 0) return payload
  const end = payload.length - (payload[0] ?? payload.length)
  if (end < 1) throw new Http2SyntaxError('a frame of HTTP/2 is longer filled than it is')
  return payload.subarray(1, end)
}

/** Writes the nine octets before a payload. @returns where the payload begins. */
export function writeHttp2Head(
  into: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  into.writeUIntBE(length, at, 3)
  into[at + 3] = type
  into[at + 4] = flags
  into.writeUInt32BE(stream, at + 5)
  return at + http2HeadBytes
}

export function frameOf(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(http2HeadBytes + payload.length)
  frame.set(payload, writeHttp2Head(frame, 0, payload.length, type, flags, stream))
  return frame
}

/** A frame whose payload is numbers of four octets. */
export function numbersFrame(type: number, stream: number, ...numbers: readonly number[]): Buffer {
  const payload = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) payload.writeUInt32BE(number, index * 4)
  return frameOf(type, 0, stream, payload)
}

/** RFC 9113, 6.5.2. */
export const settingNames = {
  headerTableBytes: 1,
  enablePush: 2,
  mostStreams: 3,
  initialWindowBytes: 4,
  mostFrameBytes: 5,
} as const

export function settingsFrame(settings: Partial<Record<keyof typeof settingNames, number>>): Buffer {
  const entries = Object.entries(settings)
  const payload = Buffer.alloc(entries.length * 6)
  for (const [index, [name, value]] of entries.entries()) {
    payload.writeUInt16BE(settingNames[name as keyof typeof settingNames], index * 6)
    payload.writeUInt32BE(value, index * 6 + 2)
  }
  return frameOf(frameTypes.settings, 0, 0, payload)
}

/** @throws Http2SyntaxError */
export function settingsIn(payload: Buffer): ReadonlyMap<number, number> {
  if (payload.length % 6 !== 0) throw new Http2SyntaxError('its settings are no whole number of settings')
  const settings = new Map<number, number>()
  for (let at = 0; at < payload.length; at += 6)
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2))
  return settings
}
