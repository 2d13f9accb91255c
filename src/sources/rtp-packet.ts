/** Ticks of the clock of every video stream over RTP (RFC 3551). */
export const ticksPerMs = 90

/** What an RTP stream carries, as its description names it. */
export type RtpVideo = 'H264' | 'H265' | 'JPEG'

/** `$`, channel and length, then the fixed head of RTP. */
export const rtpHeadBytes = 16

/** By the number that packets carry. @param sdp - RFC 4566. */
export function videoTypes(sdp: string): ReadonlyMap<number, RtpVideo> {
  const names = new Map<string, RtpVideo>([
    ['H264', 'H264'],
    ['H265', 'H265'],
    ['HEVC', 'H265'],
    ['JPEG', 'JPEG'],
  ])
  const types = new Map<number, RtpVideo>()
  if (/^m=video \d+ \S+ 26\b/m.test(sdp)) types.set(26, 'JPEG')
  for (const [, type, name = ''] of sdp.matchAll(/^a=rtpmap:(\d+) ([\w-]+)\/90000/gm)) {
    const video = names.get(name.toUpperCase())
    if (video !== undefined) types.set(Number(type), video)
  }
  return types
}

/**
 * Whether a decoder may begin with a packet (RFC 6184, 7798, 2435): parameter sets, or the first piece of a key frame.
 *
 * @param at - where it begins in `bytes`, with `$`. What is beyond the end of `bytes` says no.
 */
export function beginsKeyFrame(bytes: Buffer, at: number, video: RtpVideo): boolean {
  const payload = at + payloadOffset(bytes, at)
  if (payload >= bytes.length) return false
  switch (video) {
    case 'JPEG':
      return ((bytes[payload + 1] ?? 0) | (bytes[payload + 2] ?? 0) | (bytes[payload + 3] ?? 0)) === 0
    case 'H264':
      return beginsWith264(bytes, payload)
    case 'H265':
      return beginsWith265(bytes, payload)
    default:
      return video satisfies never
  }
}

const of264 = { key: 5, parameters: 7, several: 24, piece: 28 }
const of265 = { firstKey: 16, lastKey: 21, parameters: 32, several: 48, piece: 49 }
const isFirstPiece = 0x80

// Every packet of a camera is asked: nothing is made for the answer.

function beginsWith264(bytes: Buffer, at: number): boolean {
  const type = (bytes[at] ?? 0) & 31
  if (type === of264.several) return isFirst264((bytes[at + 3] ?? 0) & 31)
  const piece = bytes[at + 1] ?? 0
  return type === of264.piece ? piece >= isFirstPiece && isFirst264(piece & 31) : isFirst264(type)
}

function isFirst264(type: number): boolean {
  return type === of264.key || type === of264.parameters
}

function beginsWith265(bytes: Buffer, at: number): boolean {
  const type = ((bytes[at] ?? 0) >> 1) & 63
  if (type === of265.several) return isFirst265(((bytes[at + 4] ?? 0) >> 1) & 63)
  const piece = bytes[at + 2] ?? 0
  return type === of265.piece ? piece >= isFirstPiece && isFirst265(piece & 63) : isFirst265(type)
}

function isFirst265(type: number): boolean {
  return type === of265.parameters || isKey265(type)
}

function isKey265(type: number): boolean {
  return type >= of265.firstKey && type <= of265.lastKey
}

/** Behind the list of sources and the extension, as cameras send one with the time. */
function payloadOffset(bytes: Buffer, at: number): number {
  const first = bytes[at + 4] ?? 0
  const sources = rtpHeadBytes + 4 * (first & 15)
  if ((first & 16) === 0) return sources
  const [high = 0, low = 0] = [bytes[at + sources + 2], bytes[at + sources + 3]]
  return sources + 4 + 4 * ((high << 8) | low)
}

/** Times of a stream without their running over, which 32 bits do once in 13 hours. */
export class RtpClock {
  #last: number | undefined

  /** @param rtpTime - of a packet, in the order that they come in. */
  ticks(rtpTime: number): number {
    const last = this.#last
    this.#last = last === undefined ? rtpTime + 2 ** 32 : last + ((rtpTime - (last % 2 ** 32)) | 0)
    return this.#last
  }
}

/** Whether a whole packet, with its head of four bytes, holds a key picture or a piece of one, unlike parameter sets alone. */
export function holdsKeyPicture(packet: Buffer, video: RtpVideo): boolean {
  const at = payloadOffset(packet, 0)
  if (at >= packet.length) return false
  if (video === 'JPEG') return true
  const [typeOf, isKey, { several, piece }] = video === 'H264' ? units264 : units265
  const headBytes = video === 'H264' ? 1 : 2
  const type = typeOf(packet[at] ?? 0)
  if (type === piece) return isKey((packet[at + headBytes] ?? 0) & (video === 'H264' ? 31 : 63))
  if (type !== several) return isKey(type)
  for (let unit = at + headBytes; unit + 2 < packet.length; unit += 2 + packet.readUInt16BE(unit))
    if (isKey(typeOf(packet[unit + 2] ?? 0))) return true
  return false
}

const units264 = [(byte: number) => byte & 31, (type: number) => type === of264.key, of264] as const
const units265 = [(byte: number) => (byte >> 1) & 63, isKey265, of265] as const
