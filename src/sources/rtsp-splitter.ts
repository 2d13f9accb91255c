import { rtpHeadBytes } from './rtp-packet.js'

/** Longest head of a message, and longest body; cameras send some hundred bytes. */
const mostHeadBytes = 64 * 1024
const mostBodyBytes = 1024 * 1024

/** ffmpeg takes what is inside a shorter packet for text of the camera. */
const leastPacketBytes = 8

/** Of a packet that is told of, as far as it has so many. */
const toldBytes = 64
/** In the byte that says what a packet carries. */
const marked = 0x80

const dollar = 0x24
const newLine = 0x0a

/** A clause for people why a camera is not listened to any longer. */
export class CameraAnswerError extends Error {}

/** A request or response. Header names are as they were written. */
export type RtspMessage = Readonly<{
  first: string
  headers: readonly (readonly [name: string, value: string])[]
  body: Buffer
}>

export type RtspParts = Readonly<{
  /** Whole packets or parts of one, as they came; the memory is the caller's of {@link RtspSplitter.write}. */
  packets(bytes: Buffer): void
  message(message: RtspMessage): void
  /**
   * A packet of the stream begins at `at` of `bytes`, which are borrowed; its head is there, and the beginning of what it carries.
   *
   * @returns whether it is handed on.
   */
  media?(bytes: Buffer, at: number): boolean
}>

/**
 * Tells the messages of an RTSP connection from the packets between them (RFC 2326, 10.12), of which it looks at the length alone: they
 * are handed on in the pieces that they came in. Lines that are neither are left out, as cameras send some.
 */
export class RtspSplitter {
  /** Of the packet that has begun. */
  #packetLeft = 0
  /** It is not handed on. */
  #isLeftOut = false
  #kept: Buffer = Buffer.alloc(0)
  #mediaPackets = 0
  #pictures = 0

  constructor(readonly parts: RtspParts) {}

  /** Packets of pictures so far: all but reports (RTCP). */
  get mediaPackets(): number {
    return this.#mediaPackets
  }

  /** Pictures that have come to their end: the last packet of each is marked (RFC 6184, 7798, 2435). */
  get pictures(): number {
    return this.#pictures
  }

  /** Whether whole packets and messages have come, and nothing of another one. */
  get isBetween(): boolean {
    return this.#packetLeft === 0 && this.#kept.length === 0
  }

  /**
   * @param chunk - borrowed for the call.
   * @throws CameraAnswerError when a message is longer than any camera's.
   */
  write(chunk: Buffer): void {
    const bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk])
    let at = Math.min(this.#packetLeft, bytes.length)
    let from = this.#isLeftOut ? at : 0
    this.#packetLeft -= at
    while (at < bytes.length) {
      const length = bytes[at] === dollar ? packetBytes(bytes, at) : 0
      if (length > leastPacketBytes + 3 && bytes.length >= at + Math.min(length, toldBytes)) {
        this.#isLeftOut = !this.#takes(bytes, at)
        if (this.#isLeftOut) {
          this.#pass(bytes, from, at)
          from = Math.min(at + length, bytes.length)
        }
        at += length
        continue
      }
      this.#pass(bytes, from, at)
      const used = bytes[at] === dollar ? shortPacket(bytes, at, length) : this.#text(bytes, at)
      from = at + used
      if (used === 0) break
      at = from
    }
    if (at > bytes.length) {
      this.#packetLeft = at - bytes.length
      at = bytes.length
    }
    this.#pass(bytes, from, at)
    this.#kept = at === bytes.length ? nothing : Buffer.from(bytes.subarray(at))
  }

  #takes(bytes: Buffer, at: number): boolean {
    const type = bytes[at + 5] ?? 0
    if (isReport(type)) return true
    this.#mediaPackets += 1
    if (type >= marked) this.#pictures += 1
    return bytes.length < at + rtpHeadBytes || (this.parts.media?.(bytes, at) ?? true)
  }

  #pass(bytes: Buffer, from: number, to: number): void {
    if (to > from) this.parts.packets(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
  }

  /** @returns how many bytes of it are done with; 0 when more must come. */
  #text(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(newLine, at)
    if (lineEnd < 0) return short(bytes, at)
    const first = bytes.toString('latin1', at, lineEnd).trimEnd()
    if (!/^(RTSP\/\d\.\d \d{3}|[A-Z_]+ \S+ RTSP\/\d)/.test(first)) return lineEnd + 1 - at
    const head = headEnd(bytes, lineEnd + 1)
    if (head === undefined) return short(bytes, at)
    const headers = bytes
      .toString('latin1', lineEnd + 1, head)
      .split('\n')
      .flatMap(headerOf)
    const length = Number(headers.findLast(([name]) => /^content-length$/i.test(name))?.[1] ?? 0) || 0
    if (length < 0 || length > mostBodyBytes)
      throw new CameraAnswerError('a message of the camera is too long')
    if (bytes.length < head + length) return 0
    this.parts.message({ first, headers, body: Buffer.from(bytes.subarray(head, head + length)) })
    return head + length - at
  }
}

const nothing = Buffer.alloc(0)

/** With its own head of four bytes; 0 when that has not come. */
function packetBytes(bytes: Buffer, at: number): number {
  const [high, low] = [bytes[at + 2], bytes[at + 3]]
  return high === undefined || low === undefined ? 0 : 4 + (high << 8) + low
}

/** By the second byte of a packet, whose values of reports no media has (RFC 5761, 4). */
function isReport(type: number): boolean {
  return type >= 200 && type <= 207
}

function shortPacket(bytes: Buffer, at: number, length: number): number {
  return length > 0 && bytes.length >= at + length ? length : 0
}

function short(bytes: Buffer, at: number): 0 {
  if (bytes.length - at > mostHeadBytes) throw new CameraAnswerError('a message of the camera is too long')
  return 0
}

/** Where the body begins; undefined before the empty line has come. */
function headEnd(bytes: Buffer, from: number): number | undefined {
  for (let at = from; ;) {
    const end = bytes.indexOf(newLine, at)
    if (end < 0) return undefined
    if (end === at || (end === at + 1 && bytes[at] === 0x0d)) return end + 1
    at = end + 1
  }
}

function headerOf(line: string): (readonly [string, string])[] {
  const colon = line.indexOf(':')
  return colon <= 0 ? [] : [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]]
}
