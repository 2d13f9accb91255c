import { randomInt } from 'node:crypto'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import type { Clip } from './clip.js'
import { packetsOf, senderReport, type Channels, type RtpSender } from './rtp-packets.js'
import type { ServedStream } from './served-stream.js'

const clockHz = 90_000
const reportEveryMs = 2_000

/** Later than this a picture is not made up for: those behind it would come in a burst. */
const mostLateMs = 200

/** Where packets go: an RTSP connection, or UDP sockets. */
export interface PacketSink {
  readonly channels: Channels
  /** Whether the next picture is to be sent; one that is not takes no numbers, so that nobody misses its packets. */
  takes(isKey: boolean): boolean
  rtp(packets: readonly Buffer[]): void
  rtcp(packet: Buffer): void
}

/**
 * Sends one clip to one client over and over at its own speed, from its beginning, so that the first picture is a key frame and comes
 * at once. Time goes on over the seam. When this process was held up, it goes on from where it was, later.
 */
export class ClipPlayer {
  readonly sender: RtpSender = {
    sequence: randomInt(0x10000),
    ssrc: randomInt(2 ** 32),
    packets: 0,
    octets: 0,
  }
  readonly firstRtpTime: number
  readonly #clip: Clip
  #timer: NodeJS.Timeout | undefined
  #reportTimer: NodeJS.Timeout | undefined
  #startMs = 0
  #sent = 0
  #rtpTime: number

  constructor(
    readonly stream: ServedStream,
    readonly sink: PacketSink,
  ) {
    this.#clip = stream.clip
    this.firstRtpTime = stream.options.firstRtpTime ?? randomInt(2 ** 31)
    this.#rtpTime = this.firstRtpTime
  }

  /** Idempotent. */
  start(): void {
    if (this.#reportTimer !== undefined) return
    this.#startMs = nowMs()
    this.#reportTimer = setInterval(() => this.#report(), reportEveryMs)
    this.#report()
    this.#send()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearInterval(this.#reportTimer)
  }

  #send(): void {
    const { units, durationMs } = this.#clip
    const unit = units[this.#sent % units.length]
    if (unit === undefined) return
    const loopMs = Math.floor(this.#sent / units.length) * durationMs
    this.#rtpTime =
      this.firstRtpTime + Math.round(((unit.ptsMs + loopMs + this.stream.shiftMs) * clockHz) / 1e3)
    const { tamper } = this.stream.options
    const nals = tamper === undefined ? unit.nals : tamper(unit, this.#sent)
    if (this.sink.takes(unit.key)) {
      const packets = packetsOf(nals ?? unit.nals, this.#rtpTime, this.sender, this.sink.channels[0])
      if (nals !== null && !this.stream.silent) this.sink.rtp(packets)
    } else this.stream.skipped += 1
    this.#sent += 1
    this.#schedule()
  }

  #schedule(): void {
    const { units, durationMs } = this.#clip
    const next = units[this.#sent % units.length]
    const dueMs = Math.floor(this.#sent / units.length) * durationMs + (next?.dtsMs ?? 0)
    const inMs = this.#startMs + dueMs - nowMs()
    if (inMs < -mostLateMs) this.#startMs -= inMs
    this.#timer = setTimeout(() => this.#send(), Math.max(0, inMs))
  }

  #report(): void {
    this.sink.rtcp(senderReport(this.sender, this.#rtpTime, wallMs(), this.sink.channels[1]))
  }
}
