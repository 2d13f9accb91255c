import type { ClientTlsFiles } from '../config/client-tls.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { ClientTls } from '../lifecycle/client-tls.js'
import type { Log } from '../lifecycle/log.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { PeerStream, type Wanted } from './peer-stream.js'

/** A node as the others reach it. */
export type PeerNode = Readonly<{ node: string; url: string }>

/** Viewers that come back find what came meanwhile. */
const lingerMs = 60_000
const sweepMs = 5_000
/** A node that is new in the cluster may have had cameras for so long before this one heard of it. */
const unknownForMs = 10_000
/** Results that are older than what somebody wants to see: of a camera that was silent while others were asked for. */
const beforeWantedMs = 10_000
/** Another node takes no longer list, and a message of so many bytes at most. */
const mostCameras = 1_000
const mostListBytes = 24 * 1024

export type PeerStreamsDeps = Readonly<{
  token: string | undefined
  tls: ClientTlsFiles | undefined
  result: (cameraId: string, json: Buffer, picture: Buffer | undefined) => void
  /** So many results are missing, of whichever cameras. */
  gap: (dropped: number) => void
  /** Position of the newest message of the stream that the results go to. */
  newest: () => number
  log: Log
}>

/** What the other nodes see on their cameras, of those that somebody watches here. */
export class PeerStreams {
  readonly #tls: ClientTls
  readonly #peers = new Map<string, PeerStream>()
  #known: readonly PeerNode[] | undefined
  #wanted: Readonly<{ results: ReadonlySet<string>; pictures: ReadonlySet<string> }> = {
    results: new Set(),
    pictures: new Set(),
  }
  /** Cameras that are asked for, and since when; those that nobody watches any more, until when. */
  readonly #since = new Map<string, number>()
  readonly #until = new Map<string, number>()
  /** Position from which on all of a camera is there. */
  readonly #wholeFrom = new Map<string, number>()
  readonly #generations = new Map<string, number>()
  #sweeper: NodeJS.Timeout | undefined

  constructor(readonly deps: PeerStreamsDeps) {
    this.#tls = new ClientTls(deps.tls ?? true, 'cluster.tls', deps.log)
  }

  /** All other nodes. */
  nodes(nodes: readonly PeerNode[]): void {
    const urls = new Map(nodes.map(({ node, url }) => [url, node]))
    for (const [url, peer] of this.#peers) {
      if (urls.has(url)) continue
      peer.close()
      this.#peers.delete(url)
    }
    const sinceMs = this.#known === undefined ? undefined : wallMs() - unknownForMs
    if (this.#since.size > 0)
      for (const [url, node] of urls)
        if (!this.#peers.has(url)) this.#peers.set(url, this.#peer(url, node, sinceMs))
    this.#known = nodes
    this.#settle()
  }

  /** What is watched here; `*` for all. */
  want(results: ReadonlySet<string>, pictures: ReadonlySet<string>): void {
    this.#wanted = { results, pictures }
    for (const camera of this.#since.keys())
      if (!results.has(camera) && !this.#until.has(camera)) this.#until.set(camera, nowMs() + lingerMs)
    for (const camera of results) {
      this.#until.delete(camera)
      if (this.#since.has(camera)) continue
      this.#since.set(camera, wallMs())
      this.#wholeFrom.set(camera, Infinity)
    }
    if (this.#since.size === 0) return
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs).unref()
    for (const { node, url } of this.#known ?? [])
      if (!this.#peers.has(url)) this.#peers.set(url, this.#peer(url, node, undefined))
    for (const peer of this.#peers.values()) peer.changed()
    this.#settle()
  }

  /** Wall time until which all that is asked for has come. */
  get completeMs(): number {
    return Math.min(wallMs(), ...[...this.#peers.values()].map(({ completeMs }) => completeMs))
  }

  /** Position from which on all results of these cameras have come. */
  wholeFrom(cameras: readonly string[]): number {
    const all = this.#wholeFrom.get('*') ?? Infinity
    const each = cameras.map((camera) => this.#wholeFrom.get(camera) ?? Infinity)
    return Math.min(all, Math.max(...each))
  }

  stop(): void {
    clearInterval(this.#sweeper)
    for (const peer of this.#peers.values()) peer.close()
    this.#peers.clear()
  }

  #peer(url: string, node: string, sinceMs: number | undefined): PeerStream {
    let told: string | undefined
    return new PeerStream(
      url,
      {
        tls: async () => (await this.#tls.options()) ?? {},
        token: this.deps.token,
        wanted: () => this.#asks(),
        result: (message, json, picture) => this.#result(message, json, picture),
        gap: (dropped, reason) => this.#gap(node, dropped, reason),
        settled: () => this.#settle(),
        trouble: (reason) => {
          if (reason === told) return
          if (reason !== undefined) this.deps.log.warn({ node, url, reason }, 'no live results of a node')
          else if (told !== undefined) this.deps.log.info({ node, url }, 'live results of a node again')
          told = reason
        },
      },
      sinceMs,
    )
  }

  #asks(): Wanted {
    const results = [...this.#since.keys()]
    return { results: asList(results), pictures: asList([...this.#wanted.pictures]) }
  }

  #result(message: DetectionsMessage, json: Buffer, picture: Buffer | undefined): void {
    const { cameraId, capturedAt, owner } = message
    const since = Math.min(this.#since.get(cameraId) ?? Infinity, this.#since.get('*') ?? Infinity)
    if (Date.parse(capturedAt) < since - beforeWantedMs || since === Infinity) return
    const generation = owner?.generation ?? 0
    // Of a former owner.
    if (generation < (this.#generations.get(cameraId) ?? 0)) return
    this.#generations.set(cameraId, generation)
    this.deps.result(cameraId, json, picture)
  }

  #gap(node: string, dropped: number, reason: string): void {
    this.deps.log.warn({ node, dropped, reason }, 'live results of a node are missing')
    this.deps.gap(dropped)
    for (const camera of this.#wholeFrom.keys()) this.#wholeFrom.set(camera, this.deps.newest() + 1)
  }

  /** Cameras that were new are whole from now on, once every node that answers has confirmed that it was asked for them. */
  #settle(): void {
    if (this.#known === undefined || [...this.#peers.values()].some((peer) => !peer.isSettled)) return
    for (const [camera, from] of this.#wholeFrom)
      if (from === Infinity) this.#wholeFrom.set(camera, this.deps.newest() + 1)
  }

  /** What nobody has watched for a while is not asked for any more. */
  #sweep(): void {
    const gone = [...this.#until].filter(([, untilMs]) => untilMs <= nowMs()).map(([camera]) => camera)
    for (const camera of gone) {
      for (const map of [this.#until, this.#since, this.#wholeFrom]) map.delete(camera)
    }
    if (gone.length === 0) return
    if (this.#since.size === 0) {
      this.stop()
      this.#sweeper = undefined
      this.#generations.clear()
    } else for (const peer of this.#peers.values()) peer.changed()
  }
}

function asList(cameras: readonly string[]): readonly string[] {
  const isLong = cameras.length > mostCameras || JSON.stringify(cameras).length > mostListBytes
  return cameras.includes('*') || isLong ? ['*'] : cameras
}
