import type { AccessUnit, Clip } from './clip.js'
import type { RtspCredentials } from './rtsp-auth.js'

export type StreamOptions = Readonly<{
  credentials?: RtspCredentials
  /** Transports offered; both by default. */
  transports?: readonly ('tcp' | 'udp')[]
  /** Sessions at once, as cameras limit them; one more gets 453. */
  maxSessions?: number
  /** RTP time of the first packet; random by default. */
  firstRtpTime?: number
  /** Changes what is sent of the n-th unit, for tests of damage; null: its packets get lost on the way. */
  tamper?: (unit: AccessUnit, n: number) => readonly Buffer[] | null
}>

/** One path of the server. */
export class ServedStream {
  /** No pictures are sent while true; RTCP goes on, connections stay open. */
  silent = false
  /** Added to the time of what is sent from now on. */
  shiftMs = 0
  /** Pictures that clients did not get, because they did not read. */
  skipped = 0
  /** Sessions set up so far. */
  opened = 0
  /** Sessions ended by TEARDOWN. */
  teardowns = 0
  /** Most sessions at once. */
  peak = 0
  #open = 0

  constructor(
    readonly clip: Clip,
    readonly options: StreamOptions,
  ) {}

  get open(): number {
    return this.#open
  }

  get full(): boolean {
    return this.#open >= (this.options.maxSessions ?? Infinity)
  }

  entered(): void {
    this.#open += 1
    this.opened += 1
    this.peak = Math.max(this.peak, this.#open)
  }

  left(): void {
    this.#open -= 1
  }
}
