import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { ServerMessage, Subscription } from '../../messages/stream-protocol.js'
import type { BroadcastJob } from './rendering.js'
import { filterOf, keepAll, type MessageFilter } from '../message-filter.js'
import { serverFrame } from './server-frame.js'
import type { StreamFigures } from './stream-figures.js'
import type { StreamLimits } from './stream-limits.js'

/** RFC 6455 close codes this service sends. */
export const closeCodes = { goingAway: 1001, policy: 1008, tryLater: 1013 } as const

/** `WebSocket.OPEN`; the class itself is not needed here. */
const open = 1

/** What became of a message for one client. */
type Offer = 'sent' | 'dropped' | 'skipped'

/**
 * One connection: what it wants, what it missed, and whether it still lives. Not a reader of the clock: times are passed in.
 *
 * Messages are written to the connection below the WebSocket, which without compression does nothing but frame each for itself;
 * control frames are the WebSocket's, and either writes at once, so their order is that of the calls.
 */
export class StreamClient {
  subscription: Subscription | undefined
  filter: MessageFilter = keepAll
  /** Next position of the stream this client is to get live. */
  nextPosition = Number.POSITIVE_INFINITY
  #cameras: Cameras = new Set()
  /** Of which it wants pictures. */
  #frames: Cameras = new Set()
  #dropped = 0
  #slowSinceMs: number | undefined
  #lifeMs: number
  #pingMs: number
  #closingMs: number | undefined
  #bytesAtSweep = 0
  #bytesSent = 0
  #bytesGoneAtSweep = 0

  constructor(
    readonly socket: WebSocket,
    readonly wire: Socket,
    readonly limits: StreamLimits,
    attachedMs: number,
  ) {
    this.#lifeMs = attachedMs
    this.#pingMs = attachedMs + limits.pingAfterMs
  }

  get isOpen(): boolean {
    return this.socket.readyState === open && this.#closingMs === undefined
  }

  /** Wants every camera, so that a range of positions says how many messages it missed. */
  get wantsAllCameras(): boolean {
    return this.#cameras === 'all'
  }

  /** Cameras this client wants results of; `*` for all. */
  get resultCameras(): readonly string[] {
    return this.subscription?.detections === true ? listOf(this.#cameras) : []
  }

  /** Cameras this client wants pictures of; `*` for all. */
  get pictureCameras(): readonly string[] {
    return listOf(this.#frames)
  }

  get isBehind(): boolean {
    return this.socket.bufferedAmount > this.limits.maxBufferedBytes / 2
  }

  subscribe(subscription: Subscription, nextPosition: number): void {
    this.subscription = subscription
    this.filter = filterOf(subscription)
    const { cameras, frames, frameCameras = cameras } = subscription
    this.#cameras = camerasIn(cameras)
    this.#frames = frames
      ? camerasIn(frameCameras.filter((id) => id === '*' || this.wantsCamera(id)))
      : new Set()
    // `*` of pictures is no more than what results are wanted of.
    if (this.#frames === 'all') this.#frames = this.#cameras
    this.nextPosition = nextPosition
  }

  wantsCamera(cameraId: string): boolean {
    return isIn(this.#cameras, cameraId)
  }

  /** Sends what this client wants of the jobs in as few writes as may be, or counts what was left out. */
  offer(jobs: readonly BroadcastJob[], figures: StreamFigures): void {
    const [first] = jobs
    if (jobs.length === 1 && first !== undefined && first.picture === undefined)
      return this.#offer(first, figures)
    this.wire.cork()
    for (const job of jobs) {
      this.#offer(job, figures)
      // What waits for the one write would count as unsent, and make the client look slow.
      if (this.wire.writableLength >= this.limits.gatherBytes) {
        this.wire.uncork()
        this.wire.cork()
      }
    }
    this.wire.uncork()
  }

  #offer(job: BroadcastJob, figures: StreamFigures): void {
    if (job.position < this.nextPosition || !this.wantsCamera(job.cameraId) || !this.isOpen) return
    this.nextPosition = job.position + 1
    if (job.picture !== undefined && isIn(this.#frames, job.cameraId))
      figures.count(this.#offerPicture(job.picture) === 'sent' ? 'picture_sent' : 'picture_skipped')
    if (this.subscription?.detections === true)
      figures.count(this.#offerText(job.rendering.for(this.filter), job.atMs))
  }

  /** The service itself left a message out. */
  miss(position: number, cameraId: string): boolean {
    const missed =
      position >= this.nextPosition && this.wantsCamera(cameraId) && this.subscription?.detections === true
    if (missed) {
      this.#dropped += 1
      this.nextPosition = position + 1
    }
    return missed
  }

  /** Results that came before any that this client has not been offered yet. @returns whether it would have got them. */
  missed(cameraId: string, results: number): boolean {
    const isLive = this.nextPosition !== Number.POSITIVE_INFINITY
    const isWanted = cameraId === '*' || this.wantsCamera(cameraId)
    const missed = isLive && isWanted && this.subscription?.detections === true
    if (missed) this.#dropped += results
    return missed
  }

  /** Text that is part of the conversation, and so is sent whatever is waiting. */
  tell(message: ServerMessage): void {
    this.#write(serverFrame('text', Buffer.from(JSON.stringify(message))))
  }

  /**
   * @param message - ready for the wire.
   * @param flushed - called once it has left this process, or the connection is over.
   */
  send(message: Buffer, flushed?: () => void): void {
    this.#write(message, flushed)
  }

  /** A sign of life: a message or a pong. */
  heard(atMs: number): void {
    this.#lifeMs = atMs
    this.#pingMs = atMs + this.limits.pingAfterMs
  }

  /** Looks after the connection: tells a gap once the client has caught up, pings, and closes what is slow or dead. */
  sweep(atMs: number): void {
    if (this.#closingMs !== undefined) {
      if (atMs - this.#closingMs >= this.limits.closeGraceMs) this.socket.terminate()
      return
    }
    this.#noteProgress(atMs)
    const slow = this.#isSlow(atMs)
    if (!slow) this.#tellGap()
    if (slow && atMs - (this.#slowSinceMs ?? atMs) >= this.limits.slowCloseMs) this.#closeSlow(atMs)
    else if (atMs - this.#lifeMs >= this.limits.deadAfterMs) {
      if (slow) this.#closeSlow(atMs)
      else this.socket.terminate()
    } else if (atMs >= this.#pingMs && this.socket.readyState === open) {
      this.#pingMs = atMs + this.limits.pingAfterMs
      this.socket.ping()
    }
  }

  close(code: number, reason: string, atMs: number): void {
    if (this.#closingMs !== undefined) return
    this.#closingMs = atMs
    this.socket.close(code, reason)
  }

  #offerText(message: Buffer, atMs: number): Offer {
    if (this.#isSlow(atMs)) {
      this.#dropped += 1
      return 'dropped'
    }
    this.#tellGap()
    this.#write(message)
    return 'sent'
  }

  /** Pictures are the first to go: the newest is sent to whoever has caught up. */
  #offerPicture(picture: Buffer): Offer {
    if (this.socket.bufferedAmount > this.limits.maxPictureBufferedBytes) return 'skipped'
    this.#write(picture)
    return 'sent'
  }

  /** Slow from `maxBufferedBytes` on until half of it is gone, so that a gap tells of many messages and not of one. */
  #isSlow(atMs: number): boolean {
    const { bufferedAmount } = this.socket
    if (this.#slowSinceMs === undefined) {
      if (bufferedAmount > this.limits.maxBufferedBytes) this.#slowSinceMs = atMs
    } else if (bufferedAmount <= this.limits.maxBufferedBytes / 2) this.#slowSinceMs = undefined
    return this.#slowSinceMs !== undefined
  }

  #tellGap(): void {
    if (this.#dropped === 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.tell({ type: 'gap', dropped, reason: 'slow_client' })
  }

  /**
   * Bytes that leave a full buffer are a sign of life, for a pong waits behind them. Bytes of an empty buffer are none: the kernel
   * takes them for a dead peer too.
   */
  #noteProgress(atMs: number): void {
    const { bufferedAmount } = this.socket
    const gone = this.#bytesSent - bufferedAmount
    if (this.#bytesAtSweep > 0 && gone > this.#bytesGoneAtSweep) this.#lifeMs = atMs
    this.#bytesAtSweep = bufferedAmount
    this.#bytesGoneAtSweep = gone
  }

  #closeSlow(atMs: number): void {
    this.close(closeCodes.tryLater, 'too slow', atMs)
  }

  #write(frame: Buffer, flushed?: () => void): void {
    if (!this.isOpen) {
      flushed?.()
      return
    }
    this.#bytesSent += frame.length
    this.wire.write(frame, flushed)
  }
}

type Cameras = ReadonlySet<string> | 'all'

function camerasIn(ids: readonly string[]): Cameras {
  return ids.includes('*') ? 'all' : new Set(ids)
}

function isIn(cameras: Cameras, id: string): boolean {
  return cameras === 'all' || cameras.has(id)
}

function listOf(cameras: Cameras): readonly string[] {
  return cameras === 'all' ? ['*'] : [...cameras]
}
