import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { PeerNode } from '../../cluster/peer-streams.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { toBase64 } from '../../lifecycle/base64.js'
import { nowMs } from '../../lifecycle/clock.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import { StreamAwayError } from '../../api/errors.js'
import { peerOf } from '../../api/peer.js'
import { defaultStreamLimits } from '../../delivery/websocket/stream-limits.js'
import type { FromStream, NodeStreamSetup, StreamBeat, StreamSetup, ToStream } from './protocol.js'
import { leftOutFields, publishedFields, type Published } from './published-frame.js'
import type { StreamUpstream, UpgradeRequest } from '../../api/stream-upstream.js'
import type { PublishedText } from '../../delivery/websocket/stream-hub.js'
import type { HubSettings } from '../../delivery/websocket/websocket-hub.js'
import type { StreamHealth } from '../../api/gantry.js'
import type { OwnMessage } from '../child-messages.js'
import { SupervisedProcess, type BytesChannel } from '../supervised-process.js'

const loadAtMostMs = 30_000
/** Longest that who comes first waits for it to start. */
const wakeAtMostMs = 10_000
/** Longest for closing all clients in good order. */
const stopAtMostMs = 2_000
/** A scrape does not wait longer for figures of a process that is busy. */
const metricsAtMostMs = 1_000
/**
 * Bytes that may wait for the process to read them before pictures are left out, and before results are. The latter are what the hub keeps
 * for clients that come back, and more than comes until a process that does not read is killed, but for the largest of services.
 */
const maxUnread = { picturesBytes: 1024 ** 2, resultsBytes: defaultStreamLimits.resumeBytes }
/** Results nobody waits for go in one message, which is one waking of the process: so many, or after so long. */
const unwatched = { atMost: 32, withinMs: 1_000 } as const

/**
 * The stream process under supervision: it gets results and connections, and tells whose pictures are wanted. Its first client starts it,
 * so that it takes no memory where nobody watches.
 */
export class StreamProcess implements StreamUpstream {
  /** Called whenever `pictureCameras` changes. */
  onPictureCameras: ((cameras: ReadonlySet<string>) => void) | undefined
  readonly #process: SupervisedProcess<FromStream, ToStream>
  #pictureCameras: ReadonlySet<string> = new Set()
  #clients = 0
  #nodes: readonly PeerNode[] | undefined
  /** Position of the last that was published. */
  #newest = 0
  #waiting: Published[] = []
  #flushTimer: NodeJS.Timeout | undefined
  #cpuSeconds = 0
  /** Results that the process that runs now was given, with those left out. */
  #results = 0
  /** Results of cameras that it was not told of yet, as it does not read. */
  readonly #leftOut = new Map<string, number>()

  constructor(
    { server, log: logSettings }: PipelineConfig,
    hub: HubSettings,
    /** File of what was published; undefined where results are not stored. */
    storePath: string | undefined,
    readonly metrics: ServiceMetrics,
    readonly log: Log,
    /** Absent: this service has all cameras. */
    node?: NodeStreamSetup,
  ) {
    const setup = (): StreamSetup => ({
      hub,
      maxClients: server.maxStreamClients,
      storePath,
      log: logSettings,
      ...(node && { node }),
    })
    // Counters that begin at 1 would hide the first restart from `increase()`.
    metrics.streamRestarts.inc(0)
    // It can serve.
    metrics.streamUp.set(1)
    this.#process = new SupervisedProcess<FromStream, ToStream>(
      {
        title: 'stream process',
        logFields: {},
        entry: entryPath(import.meta.url, './main.js'),
        v8Flags: ['--single-threaded-gc'],
        setup: () => ({ type: 'setup', setup: setup() }) satisfies ToStream,
        loadAtMostMs,
        unavailable: () => new StreamAwayError(),
      },
      {
        ready: () => {
          metrics.streamUp.set(1)
          // Of what came while it started it knows nothing.
          this.#process.tell({ type: 'begin', newest: this.#newest })
          if (this.#nodes) this.#process.tell({ type: 'nodes', nodes: this.#nodes })
        },
        gone: () => this.#gone(),
        message: (message) => this.#receive(message),
      },
      log,
    )
  }

  get health(): StreamHealth {
    return { ...this.#process.wokenHealth, clients: this.#clients }
  }

  /** Cameras some client wants pictures of; `*` for all. */
  get pictureCameras(): ReadonlySet<string> {
    return this.#pictureCameras
  }

  adopt(request: UpgradeRequest, socket: Socket, head: Buffer): boolean | Promise<boolean> {
    const give = () => this.#give(request, socket, head)
    return this.#process.wake(wakeAtMostMs)?.then(give) ?? give()
  }

  #give(request: UpgradeRequest, socket: Socket, head: Buffer): boolean {
    this.#flush()
    const peer = peerOf(socket)
    const client: ToStream = {
      type: 'client',
      request,
      head: toBase64(head),
      behind: this.#results,
      ...(peer && { peer }),
    }
    const taken = this.#process.pass(client, socket)
    // Until the process counts it itself.
    if (taken && this.#clients === 0) this.#clients = 1
    return taken
  }

  /** What is published comes behind this position. */
  begin(newest: number): void {
    this.#newest = newest
  }

  /** The other nodes of the cluster, whenever they change. */
  tellNodes(nodes: readonly PeerNode[]): void {
    if (isDeepStrictEqual(nodes, this.#nodes)) return
    this.#nodes = nodes
    if (this.#process.ready) this.#process.tell({ type: 'nodes', nodes })
  }

  /** Never throws. While the process is away, nobody is there to miss it. */
  publish({ cameraId, json, position }: Required<PublishedText>, picture?: Buffer): void {
    this.#newest = position
    if (!this.#process.ready) return
    this.#waiting.push({ cameraId, json, position, ...(picture && { picture }), atMs: nowMs() })
    if (this.#clients > 0 || this.#waiting.length >= unwatched.atMost) this.#flush()
    else this.#flushTimer ??= setTimeout(() => this.#flush(), unwatched.withinMs).unref()
  }

  /** Brings the metrics up to date. */
  async measure(): Promise<void> {
    if (!this.#process.ready) return
    try {
      await this.#process.ask({ type: 'beat' }, metricsAtMostMs)
    } catch (error) {
      this.log.debug({ err: error }, 'figures of the stream process are a second old')
    }
  }

  async stop(): Promise<void> {
    this.#flush()
    await this.#process.stop(stopAtMostMs)
    this.#clients = 0
    this.metrics.streamUp.set(0)
  }

  #flush(): void {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    const results = this.#waiting
    this.#waiting = []
    if (results.length > 0)
      this.#process.bytes?.together(() => results.forEach((result) => this.#send(result)))
  }

  #send(result: Published): void {
    const channel = this.#process.bytes
    const { cameraId, json, picture } = result
    if (channel === undefined) return
    if (channel.unsentBytes > maxUnread.resultsBytes) {
      this.#leftOut.set(cameraId, (this.#leftOut.get(cameraId) ?? 0) + 1)
      return
    }
    this.#tellLeftOut(channel)
    const shown = channel.unsentBytes > maxUnread.picturesBytes ? undefined : picture
    channel.sendBytes(publishedFields(result), json, ...(shown === undefined ? [] : [shown]))
    this.#results += 1
  }

  #tellLeftOut(channel: BytesChannel): void {
    for (const [cameraId, results] of this.#leftOut) {
      channel.sendBytes(leftOutFields({ cameraId, results }))
      this.#results += results
    }
    this.#leftOut.clear()
  }

  #gone(): void {
    this.#count(0)
    this.#wantPictures([])
    this.#cpuSeconds = 0
    this.#results = 0
    this.#leftOut.clear()
    this.metrics.streamUp.set(0)
    this.metrics.streamRestarts.inc()
  }

  #receive(message: OwnMessage<FromStream>): void {
    switch (message.type) {
      case 'clients':
        return this.#count(message.clients)
      case 'pictures':
        return this.#wantPictures(message.cameras)
      case 'beat':
        return this.#measured(message.beat)
      default:
        return message satisfies never
    }
  }

  #count(clients: number): void {
    this.#clients = clients
    this.metrics.streamClients.set(clients)
  }

  #wantPictures(cameras: readonly string[]): void {
    this.#pictureCameras = new Set(cameras)
    this.onPictureCameras?.(this.#pictureCameras)
  }

  #measured({ rssBytes, cpuSeconds, loopP99Ms, clients, reading }: StreamBeat): void {
    const { metrics } = this
    this.#count(clients)
    for (const [result, count] of Object.entries(reading.messages))
      metrics.streamMessages.inc({ result }, count)
    for (const [camera, seconds] of reading.published)
      metrics.publish.observe({ sink: 'websocket', camera }, seconds)
    metrics.streamRss.set(rssBytes)
    metrics.streamLoopP99.set(loopP99Ms / 1_000)
    metrics.streamCpu.inc(Math.max(0, cpuSeconds - this.#cpuSeconds))
    this.#cpuSeconds = cpuSeconds
  }
}
