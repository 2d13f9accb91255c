import type { KeptMessage, ResumeRing } from './resume-ring.js'
import { Rendering } from './rendering.js'
import type { StreamClient } from './stream-client.js'
import type { MessageFilter } from './message-filter.js'

/** The kept message as this client wants it: as it is, or made anew when it filters. */
function render(kept: KeptMessage, epoch: string, filter: MessageFilter): Buffer {
  return new Rendering(formatCursor(epoch, kept.position), kept.json.bytes).for(filter)
}

/**
 * Sends a returning client what it missed, at the pace at which it reads, until it is up to date and live again. A client that
 * reads slower than the stream is written falls off the end of the ring and is told so.
 */
export class Replay {
  #cancelled = false

  constructor(
    readonly client: StreamClient,
    readonly ring: ResumeRing,
    readonly settings: Readonly<{ epoch: string; chunk: number }>,
    /** The client is up to date: `nextPosition` is the first live one. */
    readonly done: (sent: number) => void,
  ) {}

  #sent = 0

  /** @param position - first message to send. */
  run(position: number): void {
    const next = this.#skipExpired(position)
    let last: Buffer | undefined
    let at = next
    for (; at <= this.ring.newest && at - next < this.settings.chunk; at += 1) {
      const message = this.#messageAt(at)
      if (message === undefined) continue
      if (last !== undefined) this.client.send(last)
      last = message
      this.#sent += 1
      if (this.client.isBehind) {
        at += 1
        break
      }
    }
    const upToDate = at > this.ring.newest
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

  #messageAt(position: number): Buffer | undefined {
    const kept = this.ring.at(position)
    if (kept === undefined || !this.client.wantsCamera(kept.cameraId)) return undefined
    return render(kept, this.settings.epoch, this.client.filter)
  }

  #skipExpired(position: number): number {
    if (position >= this.ring.oldest) return position
    const missed = this.client.wantsAllCameras ? this.ring.oldest - position : 0
    this.client.tell({ type: 'gap', dropped: missed, reason: 'resume_expired' })
    return this.ring.oldest
  }
}

/** Position in the stream of one run of the service. */
export function formatCursor(epoch: string, position: number): string {
  return `${epoch}-${position}`
}

/** @param cursor - has the form of `cursorSchema`. */
export function parseCursor(cursor: string): Readonly<{ epoch: string; position: number }> {
  const dash = cursor.lastIndexOf('-')
  return { epoch: cursor.slice(0, dash), position: Number(cursor.slice(dash + 1)) }
}
