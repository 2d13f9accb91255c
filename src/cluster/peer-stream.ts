import type { ConnectionOptions } from 'node:tls'
import { type RawData, WebSocket } from 'ws'
import { cursorOfTime } from '../delivery/websocket/cursor.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { streamProtocol, type ClientMessage } from '../messages/stream-protocol.js'
import { nodeScope, scopeHeader } from './node-scope.js'
import { type PeerPicture, readPeerMessage, readPeerPicture } from './peer-message.js'

const streamPath = '/api/v1/stream'
const handshakeMs = 3_000
/** Of one picture. */
const mostMessageBytes = 32 * 1024 ** 2
const retry = { baseMs: 200, capMs: 2_000 }
/** A node that stands still keeps its connections: only what it says tells that it lives. */
const askEveryMs = 2_000
const deadAfterMs = 8_000
/** Clocks of two nodes, and results that were on their way when it was last heard of. */
const beforeBreakMs = 5_000
/** Longest that another node may be sending what a line that was cut has left out. */
const mayCatchUpMs = 30_000
/** What is asked for changes no more often than another node lets anybody ask. */
const askAgainMs = 600

/** Cameras whose results and pictures are asked of a node; `*` for all. */
export type Wanted = Readonly<{ results: readonly string[]; pictures: readonly string[] }>

export type PeerStreamDeps = Readonly<{
  /** Another one for each connection: files of certificates change. */
  tls: () => Promise<ConnectionOptions>
  token: string | undefined
  wanted: () => Wanted
  result: (message: DetectionsMessage, json: Buffer, picture: Buffer | undefined) => void
  /** So many results of this node are lost. */
  gap: (dropped: number, reason: string) => void
  /** The node has confirmed what is wanted now. */
  settled: () => void
  /** Why there is no connection; undefined: there is one. Told when it changes. */
  trouble: (reason: string | undefined) => void
}>

/**
 * The stream of another node, of its own cameras alone, read as any viewer reads it: what a line that was cut has left out comes when there is
 * another, as far as the other node keeps it.
 */
export class PeerStream {
  readonly #closed = new AbortController()
  #socket: WebSocket | undefined
  readonly #beganMs = wallMs()
  /** Wall time until which everything has come. */
  #aliveMs: number | undefined
  #last: Readonly<{ cursor: string; atMs: number }> | undefined
  #pictures = new Map<string, PeerPicture>()
  /** Subscriptions that were sent and are not confirmed. */
  #asked = 0
  #askedAtMs = Number.NEGATIVE_INFINITY
  #askTimer: NodeJS.Timeout | undefined
  #isOpen = false
  /** Once: what it saw meanwhile is asked for afterwards. */
  #hasFailed = false
  #openedMs = 0
  /** Where this connection went on, or has come since. */
  #goesOnAfter: string | undefined

  /** @param sinceMs - wall time from which on its results are wanted; default: from now on. */
  constructor(
    readonly url: string,
    readonly deps: PeerStreamDeps,
    sinceMs?: number,
  ) {
    this.#aliveMs = sinceMs
    void this.#run()
  }

  /** Wall time until which all of its results have come. */
  get completeMs(): number {
    return this.#aliveMs ?? this.#beganMs
  }

  /** It has confirmed what is wanted, or will be asked for all of it once it answers. */
  get isSettled(): boolean {
    return this.#isOpen ? this.#asked === 0 : this.#hasFailed
  }

  /** Something else is wanted. */
  changed(): void {
    if (this.#askTimer !== undefined || !this.#isOpen) return
    this.#asked += 1
    const waitMs = Math.max(0, this.#askedAtMs + askAgainMs - nowMs())
    this.#askTimer = setTimeout(() => {
      this.#askTimer = undefined
      this.#asked -= 1
      // Who is live goes on; who may still be sent what it has missed goes on behind what has come of that.
      const isYoung = nowMs() - this.#openedMs < mayCatchUpMs
      this.#subscribe(isYoung ? this.#goesOnAfter : undefined)
    }, waitMs)
  }

  close(): void {
    this.#closed.abort()
    clearTimeout(this.#askTimer)
    this.#socket?.terminate()
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const began = nowMs()
      this.deps.trouble(await this.#connection())
      this.#hasFailed = true
      this.deps.settled()
      if (nowMs() - began > deadAfterMs) attempt = 0
      await delay(backoffMs(attempt, retry), signal)
    }
  }

  /** Resolves with the reason once there is no connection any more. Never rejects. */
  async #connection(): Promise<string> {
    let tls: ConnectionOptions
    try {
      tls = await this.deps.tls()
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
    if (this.#closed.signal.aborted) return ''
    const socket = new WebSocket(new URL(streamPath, this.url.replace(/^http/i, 'ws')), [streamProtocol], {
      ...tls,
      headers: {
        [scopeHeader]: nodeScope,
        ...(this.deps.token !== undefined && { authorization: `Bearer ${this.deps.token}` }),
      },
      handshakeTimeout: handshakeMs,
      maxPayload: mostMessageBytes,
      perMessageDeflate: false,
    })
    this.#socket = socket
    let reason = 'it closed the connection'
    let heardMs = nowMs()
    const asking = setInterval(() => {
      if (nowMs() - heardMs > deadAfterMs) {
        reason = `it says nothing for ${deadAfterMs / 1_000} s`
        socket.terminate()
      } else if (this.#isOpen) socket.send('{"type":"ping"}')
    }, askEveryMs)
    socket.on('error', (error) => (reason = error.message))
    socket.on('message', (data, isBinary) => {
      heardMs = nowMs()
      this.#receive(bytesOf(data), isBinary)
    })
    await new Promise<void>((resolve) => socket.once('close', () => resolve()))
    clearInterval(asking)
    clearTimeout(this.#askTimer)
    this.#askTimer = undefined
    this.#isOpen = false
    this.#asked = 0
    this.#pictures.clear()
    return reason
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (isBinary) {
      const picture = readPeerPicture(data)
      if (picture !== undefined) this.#pictures.set(picture.cameraId, picture)
      return
    }
    const message = readPeerMessage(data.toString())
    switch (message.type) {
      case 'hello':
        this.#isOpen = true
        this.#openedMs = nowMs()
        this.deps.trouble(undefined)
        this.#goesOnAfter = this.#place()
        return this.#subscribe(this.#goesOnAfter)
      case 'subscribed':
        this.#asked -= 1
        this.#aliveMs = wallMs()
        if (this.#asked === 0) this.deps.settled()
        return
      case 'pong':
        this.#aliveMs = wallMs()
        return
      case 'gap':
        return this.deps.gap(message.dropped, message.reason)
      case 'error':
        return this.#refused(message.code, message.message)
      case 'detections': {
        this.#aliveMs = wallMs()
        this.#last = { cursor: message.cursor, atMs: wallMs() }
        if (this.#goesOnAfter !== undefined) this.#goesOnAfter = message.cursor
        return this.deps.result(message.message, message.json, this.#pictureOf(message.message))
      }
      case 'unknown':
        return
      default:
        message satisfies never
    }
  }

  /** Pictures come right before the result of their frame. */
  #pictureOf({ cameraId, seq }: DetectionsMessage): Buffer | undefined {
    const picture = this.#pictures.get(cameraId)
    this.#pictures.delete(cameraId)
    return picture?.seq === seq ? picture.bytes : undefined
  }

  /** A place that the other node cannot follow is given up, with what came after it. */
  #refused(code: string, message: string): void {
    this.#last = undefined
    if (code === 'GANTRY_CURSOR') this.#aliveMs = wallMs()
    this.deps.trouble(`it refuses what is asked: ${message}`)
    this.#socket?.close()
  }

  /** Where a new connection goes on; undefined: with what comes. */
  #place(): string | undefined {
    if (this.#aliveMs === undefined && !this.#hasFailed) return undefined
    const sinceMs = this.completeMs - beforeBreakMs
    // Of cameras that were silent for long there is nothing between, and much of others.
    if (this.#last !== undefined && this.#last.atMs >= sinceMs) return this.#last.cursor
    return cursorOfTime(sinceMs)
  }

  #subscribe(resumeAfter: string | undefined): void {
    const { results, pictures } = this.deps.wanted()
    const message: ClientMessage = {
      ...{ type: 'subscribe', cameras: [...results], labels: [], minScore: 0 },
      ...{ detections: true, events: false, frames: pictures.length > 0, frameCameras: [...pictures] },
      ...(resumeAfter !== undefined && { resumeAfter }),
    }
    this.#asked += 1
    this.#askedAtMs = nowMs()
    this.#socket?.send(JSON.stringify(message))
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data)
  return Buffer.isBuffer(data) ? data : Buffer.from(data)
}
