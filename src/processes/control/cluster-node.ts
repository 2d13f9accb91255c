import { hostname } from 'node:os'
import { isLoopbackHost } from '../../api/access.js'
import { CameraStore } from '../../cameras/camera-store.js'
import { ClockWatch } from '../../cluster/clock-watch.js'
import type { CameraView } from '../../cameras/camera-view.js'
import { Cluster } from '../../cluster/cluster.js'
import { PeerClient } from '../../cluster/peer-client.js'
import type { CameraConfig } from '../../config/camera.js'
import { clusterKafka, type ClusterConfig } from '../../config/cluster.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import type { ServerConfig } from '../../config/server.js'
import { describeCameraModel } from '../../ensemble/camera-model-digest.js'
import type { Log } from '../../lifecycle/log.js'
import { createClusterMetrics } from '../../metrics/cluster-metrics.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { Gap } from '../../store/record.js'
import { ClusterGantry } from './cluster-gantry.js'
import type { NodeStreamSetup } from '../stream/protocol.js'
import type { StreamProcess } from '../stream/stream-process.js'
import type { GantryService } from './service.js'
import { StreamNodes } from './stream-nodes.js'
import { storeIdentity, StoreLoss, type StoreIdentity } from './store-loss.js'

/** Another node says at once how its cameras stand. */
const camerasWithinMs = 1_000

export type ClusterNodeDeps = Readonly<{
  version: string
  /** Of models: that of the ensemble first. */
  repositories: readonly string[]
  /** Asked once the cluster has cameras for it. */
  service: () => GantryService
  metrics: ServiceMetrics
  log: Log
}>

/** This service as one of the nodes that share the cameras. */
export class ClusterNode {
  #nodes: StreamNodes | undefined
  #loss: StoreLoss | undefined

  private constructor(
    readonly cluster: Cluster,
    readonly peers: PeerClient,
    readonly clocks: ClockWatch,
    /** Where this service kept cameras while it was alone. */
    readonly store: CameraStore,
    readonly identity: StoreIdentity | undefined,
    /** What its stream has to know to show what the other nodes see. */
    readonly streamSetup: NodeStreamSetup,
    readonly log: Log,
  ) {}

  /** @throws TypeError for settings without a cluster or without its brokers, which are refused when they are read */
  static async open(
    { cluster: config, server, sinks, ensemble, store }: PipelineConfig,
    { version, repositories, service, metrics, log }: ClusterNodeDeps,
  ): Promise<ClusterNode> {
    const kafka = config && clusterKafka(config, sinks.kafka)
    if (config === undefined || kafka === undefined) throw new TypeError('a cluster without brokers')
    const peers = new PeerClient(server.token, config.tls, log)
    const models = await describeCameraModel(repositories, ensemble)
    const clusterMetrics = createClusterMetrics(metrics.registry)
    const clocks: ClockWatch = new ClockWatch({
      others: () => cluster.others(),
      peers,
      metrics: clusterMetrics,
      log,
    })
    const cluster: Cluster = new Cluster(
      { config, kafka, url: urlFor(config, server), version, models },
      {
        capacity: () => service().nodeCapacity(),
        metrics: clusterMetrics,
        runs: (camera) => void service().follow(camera),
        leaves: (id, isRemoved) => void service().release(id, isRemoved),
        met: () => void clocks.look(),
        clocks: () => clocks.differences,
        liveHere: () => liveAmong(service().cameras()),
        liveOn: (url) => liveCamerasOf(peers, url),
        log,
      },
    )
    const past = sinks.kafka && { kafka: sinks.kafka, groupId: `gantry.${config.id}.stream` }
    return new ClusterNode(
      cluster,
      peers,
      clocks,
      new CameraStore(store.path),
      await storeIdentity(store.path),
      { token: server.token, tls: config.tls, past },
      log,
    )
  }

  /**
   * Joins the cluster. Cameras of the pipeline file, and those that this service kept while it was alone, become cameras of the cluster where
   * that has none of their ids; of two with one id the kept one counts, as it did.
   *
   * @throws SlotsDifferError, TopicForgetsError, CameraStoreError; the reason of the signal
   */
  async start(fromFile: readonly CameraConfig[], signal: AbortSignal): Promise<void> {
    const kept = await this.store.load()
    const brought = new Map([...fromFile, ...kept].map((camera) => [camera.id, camera] as const))
    await this.cluster.start([...brought.values()], signal)
    this.clocks.start()
    if (kept.length === 0) return
    const cameras = kept.map(({ id }) => id)
    // Read again at the next start they would bring back what was removed from the cluster meanwhile.
    await this.store.setAside().then(
      (path) => this.log.info({ cameras, path }, 'cameras that were kept here are in the cluster now'),
      (error: unknown) => this.log.warn({ cameras, err: error }, 'cameras are kept here beside the cluster'),
    )
  }

  /** Its viewers see what all nodes see from now on. */
  follow(stream: StreamProcess): void {
    this.#nodes = new StreamNodes(this.cluster, stream)
    this.#nodes.start()
  }

  /** What clients ask: it answers for all nodes. */
  gantryOf(service: GantryService): ClusterGantry {
    return new ClusterGantry(service, this.cluster, { peers: this.peers, clocks: this.clocks })
  }

  /** From now on the brokers know what store this node has. @param tell - what sinks may lack, where it had another one before */
  watchStore(service: Pick<GantryService, 'readiness'>, tell: (gap: Gap) => void): void {
    const { cluster, identity, log } = this
    if (identity === undefined) return
    const { node } = cluster.settings.config
    this.#loss = new StoreLoss({
      ...{ note: cluster.note, identity, tell, log },
      sinks: () => service.readiness().sinks,
      isNameShared: async () => (await cluster.others()).nodes.some((other) => other.node === node),
    })
    this.#loss.start()
  }

  async stop(): Promise<void> {
    this.clocks.close()
    await this.#loss?.stop()
    this.#nodes?.stop()
    await Promise.all([this.cluster.stop(), this.peers.close()])
  }
}

/** Where the other nodes reach this one. */
function urlFor({ url }: ClusterConfig, { host, httpPort, tls }: ServerConfig): string {
  if (url !== undefined) return url
  const name = isLoopbackHost(host) ? host : hostname()
  return `${tls === undefined ? 'http' : 'https'}://${name.includes(':') ? `[${name}]` : name}:${httpPort}`
}

function liveAmong(cameras: readonly Pick<CameraView, 'id' | 'status'>[]): readonly string[] {
  return cameras.flatMap(({ id, status }) => (status.state === 'live' ? [id] : []))
}

/** @returns undefined where the node does not say. */
async function liveCamerasOf(peers: PeerClient, url: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const answer = await peers.ask(url, { method: 'GET', path: '/api/v1/cameras', withinMs: camerasWithinMs })
    const { items } = JSON.parse(answer.bytes.toString('utf8')) as { items: CameraView[] }
    return new Set(liveAmong(items))
  } catch {
    return undefined
  }
}
