import type { Channel } from './clip-player.js'
import { RtspAuth, type RtspCredentials } from './rtsp-auth.js'

export type StreamOptions = Readonly<{
  /** Begin anew at the end of the clip; without it the server closes the connection there. Default: true. */
  loop?: boolean
  credentials?: RtspCredentials
}>

/** One path of the server, with the troubles a test may put on it. */
export class RtspStream {
  readonly auth: RtspAuth | undefined
  readonly loop: boolean
  /** Added to RTP time stamps, in units of 1/90000 s. */
  timestampShift = 0
  /** Share of RTP packets left out, 0..1. */
  loss = 0
  #due = 0

  constructor(
    readonly path: string,
    readonly clip: string,
    readonly sdp: string,
    options: StreamOptions,
  ) {
    this.loop = options.loop ?? true
    this.auth = options.credentials && new RtspAuth(options.credentials)
  }

  /** The packet as it goes out; nothing when it gets lost. Losses are spread evenly, so that a test repeats. */
  alter(channel: Channel, packet: Buffer): Buffer | undefined {
    if (channel === 1) return packet
    this.#due += this.loss
    if (this.#due >= 1) {
      this.#due -= 1
      return undefined
    }
    if (this.timestampShift === 0) return packet
    const shifted = Buffer.from(packet)
    shifted.writeUInt32BE((packet.readUInt32BE(4) + this.timestampShift) >>> 0, 4)
    return shifted
  }
}
