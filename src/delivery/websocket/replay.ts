import type { StreamedResult } from '../../store/record.js'
import { formatCursor, timeOfPosition } from './cursor.js'
import type { ResumeRing } from './resume-ring.js'
import { Rendering } from './rendering.js'
import type { StreamClient } from './stream-client.js'

/** What went out before the oldest message of the ring. */
export type StreamPast = Readonly<{
  /** @returns a place in the stream of an earlier run as a position of now; undefined where nothing is known of that run. */
  placeOf(epoch: string, position: number): number | undefined
  /** @returns the place before the first that was captured then or later; undefined where there is none. */
  placeAt(timeMs: number): number | undefined
  /** Between two positions, oldest first, at most so many. */
  read(after: number, below: number, limit: number): readonly StreamedResult[]
}>

export type ReplaySettings = Readonly<{ epoch: string; chunk: number }>

type Message = Readonly<{ position: number; cameraId: string; bytes: Buffer }>

/**
 * Sends a returning client what it missed, at the pace at which it reads, until it is up to date and live again: what the ring does not
 * hold any more comes from the store. What neither has is told.
 */
export class Replay {
  #cancelled = false
  #sent = 0
  /** Rendered and not yet sent: who waits for the end of a part waits for its last message. */
  #last: Buffer | undefined

  constructor(
    readonly client: StreamClient,
    readonly ring: ResumeRing,
    readonly past: StreamPast | undefined,
    readonly settings: ReplaySettings,
    /** The client is up to date: `nextPosition` is the first live one. */
    readonly done: (sent: number) => void,
    /** It has this message. */
    readonly has: (json: Buffer) => boolean = () => false,
  ) {}

  /** @param position - first message to send. */
  run(position: number): void {
    const at = position < this.ring.oldest ? this.#replayStored(position) : this.#replayKept(position)
    const upToDate = at > this.ring.newest
    const last = this.#last
    this.#last = undefined
    if (last !== undefined) this.client.send(last, upToDate ? undefined : () => this.#goOn(at))
    else if (!upToDate) setImmediate(() => this.#goOn(at))
    if (!upToDate) return
    this.client.nextPosition = at
    this.done(this.#sent)
  }

  cancel(): void {
    this.#cancelled = true
  }

  #goOn(position: number): void {
    if (!this.#cancelled && this.client.isOpen) this.run(position)
  }

  /** @returns where to go on. */
  #replayKept(from: number): number {
    let at = from
    for (let count = 0; count < this.settings.chunk; count += 1) {
      const kept = this.ring.next(at)
      if (kept === undefined) return this.ring.newest + 1
      at = kept.position + 1
      this.#offer({ ...kept, bytes: kept.json.bytes })
      if (this.client.isBehind) break
    }
    return at
  }

  /** @returns where to go on. */
  #replayStored(from: number): number {
    const { oldest } = this.ring
    const { chunk } = this.settings
    const stored = this.past?.read(from - 1, oldest, chunk) ?? []
    let at = from
    for (const { position, cameraId, value } of stored) {
      this.#tellGap(position - at)
      at = position + 1
      if (value.length > 0)
        this.#offer({ position, cameraId, bytes: Buffer.from(value.buffer, value.byteOffset, value.length) })
      if (this.client.isBehind) return at
    }
    if (stored.length === chunk) return at
    this.#tellGap(oldest - at)
    return oldest
  }

  /** The message as this client wants it: as it is, or made anew when it filters. */
  #offer({ position, cameraId, bytes }: Message): void {
    if (!this.client.wantsCamera(cameraId) || this.has(bytes)) return
    this.#sendLast()
    const cursor = formatCursor({ epoch: this.settings.epoch, position })
    this.#last = new Rendering(cursor, bytes).for(this.client.filter)
    this.#sent += 1
  }

  /** Whose they were is not known. */
  #tellGap(missed: number): void {
    if (missed === 0) return
    this.#sendLast()
    const isCounted = this.client.wantsAllCameras && timeOfPosition(this.ring.newest) === undefined
    const dropped = isCounted ? missed : 0
    this.client.tell({ type: 'gap', dropped, reason: 'resume_expired' })
  }

  #sendLast(): void {
    if (this.#last !== undefined) this.client.send(this.#last)
    this.#last = undefined
  }
}
