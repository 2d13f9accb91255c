import type { Socket } from 'node:net'
import type { RawData, WebSocket } from 'ws'
import { GantryError, toErrorRecord } from '../../errors.js'
import { streamProtocol, type ClientMessage, type Subscription } from '../../messages/stream-protocol.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import type { PublishedText, StreamHub } from './stream-hub.js'
import { type BroadcastJob, Rendering } from './rendering.js'
import { Broadcaster } from './broadcaster.js'
import { LoopLoad } from './gather-policy.js'
import {
  parseClientMessage,
  StreamCursorError,
  StreamMessageError,
  StreamRateError,
} from './client-message.js'
import { CameraDemand } from './camera-demand.js'
import { serverFrame } from './server-frame.js'
import { formatCursor, parseCursor, timedPosition, timeOfPosition } from './cursor.js'
import { Replay, type ReplaySettings, type StreamPast } from './replay.js'
import { SharedReplay, type SharedStream } from './shared-replay.js'
import { ResumeRing } from './resume-ring.js'
import { closeCodes, StreamClient } from './stream-client.js'
import { StreamFigures } from './stream-figures.js'
import { defaultStreamLimits, type StreamLimits } from './stream-limits.js'

export type HubSettings = Readonly<{
  /** Name of the service, as clients see it. */
  service: string
  version: string
  /** Id of this run of the service, `[0-9a-z]+`; part of every cursor. */
  epoch: string
}>

/** What the hub keeps about a connection besides the client itself. */
type Connection = {
  readonly client: StreamClient
  readonly bad: RecentHits
  readonly subscribes: RecentHits
  readonly pings: RecentHits
  replay: Readonly<{ cancel: () => void }> | undefined
  resultCameras: readonly string[]
  pictureCameras: readonly string[]
}

/** Where a returning client goes on: a position, a time, or nowhere that is known. */
type Start = number | Readonly<{ fromMs: number }> | 'expired'

/** {@link StreamHub} over `ws` sockets. */
export class WebSocketHub implements StreamHub {
  onPictureCameras: ((cameras: ReadonlySet<string>) => void) | undefined
  onResultCameras: ((cameras: ReadonlySet<string>) => void) | undefined
  onClients: ((clients: number) => void) | undefined
  readonly figures = new StreamFigures()
  readonly #connections = new Map<WebSocket, Connection>()
  readonly #results = new CameraDemand()
  readonly #pictures = new CameraDemand()
  readonly #ring: ResumeRing
  readonly #broadcaster: Broadcaster<StreamClient>
  #clients: readonly StreamClient[] | undefined
  #sweeper: NodeJS.Timeout | undefined
  #stopping: Promise<void> | undefined

  constructor(
    readonly settings: HubSettings,
    readonly log: Log,
    readonly limits: StreamLimits = defaultStreamLimits,
    /** What was sent before the hub was there, or is kept no more. */
    readonly past?: StreamPast,
    /** Absent: nobody else publishes. */
    readonly shared?: SharedStream,
  ) {
    this.#ring = new ResumeRing(limits.resumeMessages, limits.resumeBytes)
    const load = new LoopLoad()
    this.#broadcaster = new Broadcaster<StreamClient>(limits, {
      clients: () => this.#clientList(),
      load: () => load.now(),
      serve: (jobs, clients) => this.#serve(jobs, clients),
      done: ({ cameraId, atMs }) => this.figures.published(cameraId, (nowMs() - atMs) / 1000),
      leftOut: (job) => this.#leaveOut(job),
    })
  }

  get clients(): number {
    return this.#connections.size
  }

  get pictureCameras(): ReadonlySet<string> {
    return this.#pictures.cameras
  }

  get resultCameras(): ReadonlySet<string> {
    return this.#results.cameras
  }

  /** Position of the newest message. */
  get newest(): number {
    return this.#ring.newest
  }

  attach(socket: WebSocket, wire: Socket): void {
    if (this.#stopping !== undefined) {
      socket.close(closeCodes.goingAway, 'service is stopping')
      return
    }
    const connection = this.#connect(socket, wire)
    socket.on('message', (data, isBinary) => this.#receive(connection, data, isBinary))
    socket.on('pong', () => connection.client.heard(nowMs()))
    socket.on('error', (error) => this.log.debug({ err: error }, 'stream client failed'))
    socket.on('close', () => this.#forget(socket, connection))
    // Who comes now and comes back later has missed nothing of before.
    if (this.shared !== undefined) this.#ring.advance(this.#place(undefined) ?? 0)
    connection.client.tell({
      type: 'hello',
      protocol: streamProtocol,
      service: this.settings.service,
      version: this.settings.version,
      cursor: this.#cursor(this.#ring.newest),
    })
  }

  /** The first message that is published lies behind this position. */
  begin(newest: number): void {
    this.#ring.begin(newest)
  }

  publish({ cameraId, json, position: place }: PublishedText, picture?: Uint8Array, atMs = nowMs()): void {
    if (this.#stopping !== undefined) return
    const position = this.#ring.push(cameraId, json, this.#place(place))
    if (this.#connections.size === 0) return
    this.#broadcaster.push({
      position,
      cameraId,
      rendering: new Rendering(this.#cursor(position), json),
      picture: picture && this.#wantsPicture(cameraId) ? serverFrame('binary', picture) : undefined,
      atMs,
    })
  }

  /** Where several publish the places of each are none of the others'. */
  #place(given: number | undefined): number | undefined {
    const { shared } = this
    return shared === undefined ? given : timedPosition(shared.completeMs(), this.#ring.newest)
  }

  /** Results of a camera, or of `*`, that never came here, as so many waited: positions go on behind them, and who wanted them is told. */
  missed(cameraId: string, results: number): void {
    this.#ring.skip(results)
    for (const client of this.#clientList())
      if (client.missed(cameraId, results)) this.figures.count('dropped', results)
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#closeAll()
    return this.#stopping
  }

  #connect(socket: WebSocket, wire: Socket): Connection {
    const { badWindowMs, subscribeWindowMs, pingWindowMs, sweepMs } = this.limits
    const connection: Connection = {
      client: new StreamClient(socket, wire, this.limits, nowMs()),
      bad: new RecentHits(badWindowMs),
      subscribes: new RecentHits(subscribeWindowMs),
      pings: new RecentHits(pingWindowMs),
      replay: undefined,
      resultCameras: [],
      pictureCameras: [],
    }
    this.#connections.set(socket, connection)
    this.#clientsChanged()
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs).unref()
    return connection
  }

  #receive(connection: Connection, data: RawData, isBinary: boolean): void {
    const { client } = connection
    client.heard(nowMs())
    if (!client.isOpen) return
    try {
      if (isBinary) throw new StreamMessageError('binary messages are not understood')
      this.#answer(connection, parseClientMessage(textOf(data)))
    } catch (error) {
      if (!(error instanceof GantryError)) this.log.error({ err: error }, 'stream message failed')
      this.#reject(connection, error)
    }
  }

  /** @throws StreamRateError, StreamCursorError */
  #answer(connection: Connection, message: ClientMessage): void {
    switch (message.type) {
      case 'ping':
        return this.#pong(connection)
      case 'subscribe': {
        const { type: _type, ...subscription } = message
        return this.#subscribe(connection, subscription)
      }
      default:
        return message satisfies never
    }
  }

  /** @throws StreamRateError */
  #pong({ client, pings }: Connection): void {
    const { maxPings, pingWindowMs } = this.limits
    if (pings.hit(nowMs()) > maxPings) throw new StreamRateError('ping', maxPings, pingWindowMs)
    client.tell({ type: 'pong', at: new Date(wallMs()).toISOString() })
  }

  /** @throws StreamRateError, StreamCursorError */
  #subscribe(connection: Connection, subscription: Subscription): void {
    const { maxSubscribes, subscribeWindowMs } = this.limits
    if (connection.subscribes.hit(nowMs()) > maxSubscribes)
      throw new StreamRateError('subscribe', maxSubscribes, subscribeWindowMs)
    const from = this.#startOf(subscription)
    const { client } = connection
    connection.replay?.cancel()
    connection.replay = undefined
    // During a replay nothing is live: what comes meanwhile is in the ring, and the replay goes on until there is no more.
    client.subscribe(subscription, from === undefined ? this.#nextLive(client) : Number.POSITIVE_INFINITY)
    this.#demand(connection, client)
    client.tell({ type: 'subscribed', ...subscription })
    if (from !== undefined) this.#replay(connection, from)
  }

  #replay(connection: Connection, from: Start): void {
    const { client } = connection
    const settings: ReplaySettings = { epoch: this.settings.epoch, chunk: this.limits.replayChunk }
    const done = (sent: number) => this.figures.count('sent', sent)
    if (typeof from === 'object' && this.shared !== undefined) {
      const replay = new SharedReplay(client, this.#ring, this.shared, settings, done)
      connection.replay = replay
      void replay.run(from.fromMs)
      return
    }
    if (typeof from !== 'number') client.tell({ type: 'gap', dropped: 0, reason: 'resume_expired' })
    const replay = new Replay(client, this.#ring, this.past, settings, done)
    connection.replay = replay
    replay.run(typeof from === 'number' ? from : this.#ring.oldest)
  }

  /** Of who was live already nothing is left out that still waits to be sent. */
  #nextLive({ nextPosition }: StreamClient): number {
    return Math.min(nextPosition, this.#ring.newest + 1)
  }

  /** @throws StreamCursorError */
  #startOf(subscription: Subscription): Start | undefined {
    const { resumeAfter, detections, cameras } = subscription
    if (resumeAfter === undefined || !detections) return undefined
    const { epoch, position } = parseCursor(resumeAfter)
    if (epoch !== this.settings.epoch) return this.#startElsewhere(epoch, position)
    if (position > this.#ring.newest) throw new StreamCursorError(resumeAfter)
    const isThere = position + 1 >= Math.max(this.#ring.oldest, this.shared?.wholeFrom(cameras) ?? 0)
    if (this.shared === undefined || isThere) return position + 1
    return { fromMs: timeOfPosition(position) ?? 0 }
  }

  /** Of another run, or another node. */
  #startElsewhere(epoch: string, position: number): Start {
    const fromMs = timeOfPosition(position)
    if (this.shared !== undefined) return fromMs === undefined ? 'expired' : { fromMs }
    const place = this.past?.placeOf(epoch, position)
    if (place !== undefined) return place + 1
    if (fromMs === undefined) return 'expired'
    if (this.past === undefined) return this.#ring.oldest
    return (this.past.placeAt(fromMs) ?? this.#ring.newest) + 1
  }

  #reject(connection: Connection, error: unknown): void {
    this.figures.count('rejected')
    const { client } = connection
    client.tell({ type: 'error', ...toErrorRecord(error) })
    if (connection.bad.hit(nowMs()) < this.limits.maxBadMessages) return
    connection.replay?.cancel()
    client.close(closeCodes.policy, 'too many bad messages', nowMs())
  }

  #serve(jobs: readonly BroadcastJob[], clients: readonly StreamClient[]): void {
    for (const client of clients) client.offer(jobs, this.figures)
  }

  #leaveOut(job: BroadcastJob): void {
    for (const client of this.#clientList())
      if (client.miss(job.position, job.cameraId)) this.figures.count('dropped')
  }

  #sweep(): void {
    const atMs = nowMs()
    for (const client of this.#clientList()) client.sweep(atMs)
  }

  #forget(socket: WebSocket, connection: Connection): void {
    connection.replay?.cancel()
    if (!this.#connections.delete(socket)) return
    this.#clientsChanged()
    this.#demand(connection, { resultCameras: [], pictureCameras: [] })
    if (this.#connections.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }

  #demand(
    connection: Connection,
    { resultCameras, pictureCameras }: Pick<StreamClient, 'resultCameras' | 'pictureCameras'>,
  ): void {
    const resultsChanged = this.#results.replace(connection.resultCameras, resultCameras)
    const picturesChanged = this.#pictures.replace(connection.pictureCameras, pictureCameras)
    connection.resultCameras = resultCameras
    connection.pictureCameras = pictureCameras
    if (resultsChanged) this.onResultCameras?.(this.#results.cameras)
    if (picturesChanged) this.onPictureCameras?.(this.#pictures.cameras)
  }

  #wantsPicture(cameraId: string): boolean {
    return this.#pictures.has('*') || this.#pictures.has(cameraId)
  }

  #clientList(): readonly StreamClient[] {
    this.#clients ??= [...this.#connections.values()].map(({ client }) => client)
    return this.#clients
  }

  #clientsChanged(): void {
    this.#clients = undefined
    this.onClients?.(this.#connections.size)
  }

  #cursor(position: number): string {
    return formatCursor({ epoch: this.settings.epoch, position })
  }

  async #closeAll(): Promise<void> {
    // What was published before is the last that clients get.
    await atMost(this.limits.closeGraceMs, this.#broadcaster.flush())
    this.#broadcaster.clear()
    const closed = [...this.#connections].map(([socket, { client, replay }]) => {
      replay?.cancel()
      const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      client.close(closeCodes.goingAway, 'service is stopping', nowMs())
      return gone
    })
    await atMost(this.limits.closeGraceMs, Promise.all(closed))
    for (const socket of this.#connections.keys()) socket.terminate()
    await Promise.all(closed)
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString()
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString()
}

/** Counts what happened in the last `windowMs`. */
export class RecentHits {
  #times: number[] = []

  constructor(readonly windowMs: number) {}

  /** @returns how often it happened within the window, this time included. */
  hit(atMs: number): number {
    this.#times = this.#times.filter((time) => atMs - time < this.windowMs)
    this.#times.push(atMs)
    return this.#times.length
  }
}
