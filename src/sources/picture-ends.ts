import { RtpClock, rtpHeadBytes, ticksPerMs, videoTypes, type RtpVideo } from './rtp-packet.js'

/** Shortest time between pictures of a camera that ends them for the decoder. */
const leastWaitMs = 500
/** A picture that seems to come so much later than the one before is not left out by the sampler. */
const periods = 1.25
const keptTimes = 32
const clockSetMs = 600_000
/** A time is told with microseconds. */
const sameMs = 0.02

/** Access unit delimiters (H.264, 7.4.1.2.3; H.265, 7.4.2.4.4): no picture goes on behind one. */
const delimiters = new Map<RtpVideo, Buffer>([
  ['H264', Buffer.from([0x09, 0xf0])],
  ['H265', Buffer.from([0x46, 0x01, 0x50])],
])

type Moved = { readonly seemsTicks: number; isTicks: number | undefined }

export type PictureEndsOptions = Readonly<{
  sampleFps: number
  /** How many packets of pictures have come. */
  packets(): number
  /** Hands a whole packet to the decoder, or does not where that is in the midst of another one. */
  send(packet: Buffer): boolean
}>

/**
 * Ends pictures of a slow camera for the decoder. ffmpeg takes a picture for whole when the next one begins, so that each would come a
 * whole time between pictures late. Over RTP the last packet of a picture is marked; where none follows it for a while, a delimiter is
 * sent behind it.
 *
 * The decoder takes the delimiter for the beginning of the next picture, and its time for that of the picture: {@link timeOf} tells the
 * right one. With B-frames times go back and forth, and nothing is sent.
 */
export class PictureEnds {
  readonly #codecs = new Map<number, Buffer>()
  readonly #clock = new RtpClock()
  readonly #waitMs: number
  readonly #moved: Moved[] = []
  #timer: NodeJS.Timeout | undefined
  #firstTicks: number | undefined
  #lastTicks: number | undefined
  #isOrdered = true

  constructor(readonly options: PictureEndsOptions) {
    this.#waitMs = Math.max(leastWaitMs, (periods * 1_000) / options.sampleFps)
  }

  /** The camera has described what it sends. @param sdp - RFC 4566. */
  described(sdp: string): void {
    for (const [type, video] of videoTypes(sdp)) {
      const delimiter = delimiters.get(video)
      if (delimiter !== undefined) this.#codecs.set(type, delimiter)
    }
  }

  /** @param at - where the marked packet begins in `bytes`, with `$`; its head is there. */
  ended(bytes: Buffer, at: number): void {
    clearTimeout(this.#timer)
    const delimiter = this.#codecs.get((bytes[at + 5] ?? 0) & 0x7f)
    if (delimiter === undefined || !this.#isOrdered) return
    const ticks = this.#clock.ticks(bytes.readUInt32BE(at + 8))
    const before = this.#lastTicks
    this.#firstTicks ??= ticks
    this.#lastTicks = ticks
    const last = this.#moved.at(-1)
    if (last !== undefined) last.isTicks ??= ticks
    // A clock that is set goes back further than B-frames do.
    this.#isOrdered = before === undefined || ticks >= before || before - ticks > clockSetMs * ticksPerMs
    if (before !== undefined && ticks - before < this.#waitMs * ticksPerMs) return
    const packet = Buffer.concat([bytes.subarray(at, at + rtpHeadBytes), delimiter])
    const packets = this.options.packets()
    this.#timer = setTimeout(() => this.#end(packet, ticks, packets), this.#waitMs)
  }

  /** @param ptsMs - of a picture, as the decoder has it, from the first one on. */
  timeOf(ptsMs: number | null): number | null {
    const first = this.#firstTicks
    if (ptsMs === null || first === undefined || this.#moved.length === 0) return ptsMs
    const moved = this.#moved.find(
      ({ seemsTicks }) => Math.abs((seemsTicks - first) / ticksPerMs - ptsMs) < sameMs,
    )
    return moved?.isTicks === undefined ? ptsMs : (moved.isTicks - first) / ticksPerMs
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #end(packet: Buffer, ticks: number, packets: number): void {
    if (this.options.packets() !== packets) return
    const seemsTicks = ticks + Math.round(this.#waitMs * ticksPerMs)
    packet.writeUInt16BE(packet.length - 4, 2)
    packet[4] = 0x80
    packet[5] = (packet[5] ?? 0) & 0x7f
    packet.writeUInt32BE(seemsTicks % 2 ** 32, 8)
    if (!this.options.send(packet)) return
    this.#moved.push({ seemsTicks, isTicks: undefined })
    if (this.#moved.length > keptTimes) this.#moved.shift()
  }
}
