import { randomBytes } from 'node:crypto'
import { collectDefaultMetrics } from 'prom-client'
import { createResultCache } from '../../cache/create-cache.js'
import type { ResultCache } from '../../cache/result-cache.js'
import { StoredResults } from '../../cache/stored-results.js'
import { repositoriesOf, type LoadedPipeline } from '../../config/load.js'
import { sinkNames } from '../../config/sinks.js'
import { connectsAtOnce, type PipelineConfig } from '../../config/pipeline.js'
import type { ServerTls } from '../../config/server.js'
import { storeBounds } from '../../config/store.js'
import { repositoriesFrom, repositoryWith } from '../../repository/repository-files.js'
import {
  checkRepositories,
  unreadableOf,
  type UnreadableRepositories,
} from '../../repository/repository-folder.js'
import { packageVersion } from '../../lifecycle/installation.js'
import { wallMs } from '../../lifecycle/clock.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { unlessAborted } from '../../lifecycle/delay.js'
import { DescriptorWatch } from '../../lifecycle/descriptor-watch.js'
import type { Log } from '../../lifecycle/log.js'
import { tryTemporaryFolder, whyNotWritable } from '../../lifecycle/temporary-folder.js'
import { createServiceMetrics, type ServiceMetrics } from '../../metrics/service-metrics.js'
import { createStoreMetrics } from '../../metrics/store-metrics.js'
import { createTlsMetrics } from '../../metrics/tls-metrics.js'
import { isLoopbackHost } from '../../api/access.js'
import { grpcPortFree } from '../../api/free-port.js'
import { openTracing } from '../../tracing/open-tracing.js'
import { createHttpServer, type HttpServer } from '../../api/http-server.js'
import { StoredCoverage } from '../../coverage/stored-coverage.js'
import { CameraDirectory } from '../../cameras/camera-directory.js'
import { CameraStore } from '../../cameras/camera-store.js'
import { EngineLoads } from '../../cameras/engine-loads.js'
import type { Gantry } from '../../api/gantry.js'
import { RecordStore } from '../../store/record-store.js'
import { ModelServerProcess } from '../model-server/model-server-process.js'
import { DeviceStates } from '../device-states.js'
import { HealthSocket, type HealthTelling } from '../health-socket.js'
import type { ClusterNode } from './cluster-node.js'
import { createSinks } from './create-sinks.js'
import { devicesFor } from './devices-for.js'
import { FrameTraces } from './frame-traces.js'
import { GpuWatch } from './gpu-watch.js'
import { lookAtCameras } from './look-at-cameras.js'
import { doorReasons } from './readiness.js'
import { ServerCertificates } from './server-certificates.js'
import { GantryService } from './service.js'
import { sinkPlaces } from './sink-places.js'
import { StoredRepositories } from './stored-repositories.js'
import { StreamProcess } from '../stream/stream-process.js'
import { TlsDoorProcess } from '../tls-door/tls-door-process.js'

/** Longest that the model server of a service that was killed may hold its port. */
const grpcPortFreeWithinMs = 2_000

/** A service that answers. */
export type RunningService = Readonly<{
  gantry: Gantry
  /** Where it listens, with the ports actually taken. */
  httpUrl: string
  metricsUrl: string
  /** Reads the files of `server.tls` again at once. Never rejects. Absent without such files. */
  readCertificatesAgain: (() => Promise<void>) | undefined
  /** Idempotent, never rejects; takes at most `server.drainSeconds` and a few seconds, and no longer than it needs. */
  stop(): Promise<void>
}>

/**
 * Builds the service from its settings and starts it: server first, so that readiness can be asked for while models load.
 *
 * @param signal - ends the start, wherever it is.
 * @throws GantryError when it cannot run: port taken, model unusable (those of clients with `models.exitOnError`), camera URL refused; the reason of the signal. Nothing is left
 * running then.
 */
export async function runService(
  { config: settings, baseDir, path }: LoadedPipeline,
  { env, log, signal }: Readonly<{ env: NodeJS.ProcessEnv; log: Log; signal: AbortSignal }>,
): Promise<RunningService> {
  await unlessAborted(tryTemporaryFolder(), signal)
  const metrics = createServiceMetrics()
  const stored = await unlessAborted(StoredRepositories.open(settings, { env, log, metrics, signal }), signal)
  const { config } = stored
  const unreadable = await unlessAborted(lookAtRepositories(config), signal)
  // Memory, CPU, handles and loop delay of this process: `process_*` and `nodejs_*`.
  collectDefaultMetrics({ register: metrics.registry, eventLoopMonitoringPrecision: 50 })
  const version = packageVersion()
  // Base 36, because it is part of cursors and record ids.
  const epoch = wallMs().toString(36) + BigInt(`0x${randomBytes(4).toString('hex')}`).toString(36)
  const mediaRoot = config.mediaRoot ?? baseDir
  const repositories = repositoriesFrom(repositoriesOf(config), config.ensemble)
  const { all, engineDevices } = await unlessAborted(devicesFor(config, repositories), signal)
  const devices = new DeviceStates(all)
  const engines = engineDevices.length
  const loads = new EngineLoads(engines, new Set(engineDevices).size > 1)
  if (config.inference.deviceId !== undefined)
    log.warn(
      { setting: 'inference.deviceId' },
      `inference.deviceId is replaced: write inference.devices: [${config.inference.deviceId}]`,
    )
  const node = await unlessAborted(
    openClusterNode(config, { version, repositories, service: () => service, metrics, log }),
    signal,
  )
  const directory = new CameraDirectory({
    store: node?.cluster.kept ?? new CameraStore(config.store.path),
    keepsAll: node !== undefined,
    metrics,
    engines,
    loads,
    mediaRoot,
    cameraNetworks: config.cameraNetworks,
    // Who asks a service on loopback is on this machine, and needs no camera to reach what listens there.
    loopbackClosed: !isLoopbackHost(config.server.host),
  })
  await unlessAborted(node ? directory.vouchFor(config.cameras) : directory.load(config.cameras), signal)
  const unwritable = await unlessAborted(whyNotWritable(config.store.path), signal)
  if (unwritable !== undefined)
    log.warn(
      { setting: 'store.path', path: config.store.path, reason: unwritable },
      'store.path cannot be written: cameras cannot be kept over a restart, and models are tried again at each',
    )
  const store = createStore(config, epoch, metrics, log)
  const cameras = () => directory
  const sinks = await unlessAborted(createSinks({ config, store, cameras, version, metrics, log }), signal)
  const who = { process: 'control', pipeline: config.name, version } as const
  const tracing = config.engines > 0 && (await unlessAborted(openTracing(config.tracing, who, log), signal))
  const tls = config.server.tls && createServerTls(config, config.server.tls, metrics, log)
  const modelServer = config.modelServer.enabled
    ? new ModelServerProcess(stored, version, unreadable, devices, metrics, log, tls?.certificates)
    : undefined
  tls?.certificates.onChange((material) => modelServer?.useTls(material))
  const stream = new StreamProcess(
    config,
    { service: config.name, version, epoch },
    config.store.durability.detections === 'outbox' ? store.path : undefined,
    ...([metrics, log, node?.streamSetup] as const),
  )
  node?.follow(stream)
  const service: GantryService = new GantryService({
    name: config.name,
    version,
    sinkPlaces: sinkPlaces(config),
    epoch,
    engineDevices,
    engineSetup: {
      repositories,
      ensemble: config.ensemble,
      inference: config.inference,
      allowJsBackends: config.models.allowJsBackends,
      maxConcurrentConnects: connectsAtOnce(config),
      mediaRoot,
      cameraNetworks: config.cameraNetworks,
      log: config.log,
    },
    devices,
    loads,
    directory,
    coverage: new StoredCoverage(store),
    admission: config.admission,
    latencyObjectiveMs: config.latencyObjectiveMs,
    lookAtCameras: () => lookAtCameras(directory),
    cache: cacheOf(config, store, metrics, log),
    store,
    sinks,
    stream,
    metrics,
    decoding: {
      share: config.decoding.gpuMemoryShare,
      intervalMs: config.server.gpuMetricsIntervalMs,
    },
    gpus: new GpuWatch({ intervalMs: config.server.gpuMetricsIntervalMs }, log),
    repositories: stored,
    modelServer,
    tlsDoor: tls?.door,
    traces: tracing ? new FrameTraces(tracing) : undefined,
    ...(node && { cluster: node.cluster }),
    log,
  })
  const gantry = node?.gantryOf(service) ?? service
  const { maxRequestBytes } = config.modelServer
  const models = modelServer && { upstream: modelServer, maxRequestBytes }
  const server = createHttpServer({
    gantry,
    settings: config.server,
    log,
    ...(models === undefined ? {} : { models }),
    ...(tls && { tls: tls.door }),
  })
  new DescriptorWatch(log)
  const { host, grpcPort, drainSeconds } = config.server
  let stopped: Promise<void> | undefined
  let health: HealthSocket | undefined
  const end = () =>
    stopInOrder(service, node, server, drainSeconds).finally(async () => {
      health?.close()
      tls?.certificates.close()
      await stored.stop()
    })
  const stop = () => (stopped ??= told(end, drainSeconds, log))
  try {
    tls?.certificates.start()
    stored.start()
    await server.start(signal)
    health = await HealthSocket.open(() => healthOf(service, server, path))
    if (modelServer) await grpcPortFree(host, grpcPort, grpcPortFreeWithinMs, signal)
    await unlessAborted(Promise.all([service.start(), node?.start(config.cameras, signal)]), signal)
    node?.watchStore(service, (gap) => store.onGap?.(gap))
    if (modelServer && config.models.exitOnError) await unlessAborted(modelServer.allLoaded(), signal)
  } catch (error) {
    // What makes the start impossible is told by whoever catches it, alone.
    await (signal.aborted ? stop() : end())
    throw error
  }
  return {
    gantry,
    ...urlsOf(server),
    readCertificatesAgain: tls && (() => tls.certificates.readAgain()),
    stop,
  }
}

/** Where it listens. */
function urlsOf({ address }: HttpServer): Readonly<{ httpUrl: string; metricsUrl: string }> {
  if (!address) throw new TypeError('the server runs without an address')
  const httpUrl = address.url.replace(/\/$/, '')
  return { httpUrl, metricsUrl: httpUrl.replace(/:\d+$/, `:${address.metricsPort}/metrics`) }
}

/** What commands of this user are told; until engines and models are there the service is alive and not ready. */
function healthOf(service: GantryService, server: HttpServer, path: string | undefined): HealthTelling {
  const { name, version } = service
  const { ready, reasons, tlsDoor } = service.readiness()
  const [closed = null] = doorReasons(tlsDoor ?? undefined)
  return {
    ...{ name, version, pid: process.pid, pipeline: path ?? null, ready, closed },
    reasons: reasons.filter((reason) => reason !== closed),
    ...urlsOf(server),
  }
}

/** Loaded for nodes of a cluster alone: one service needs neither Kafka nor peers. */
async function openClusterNode(
  config: PipelineConfig,
  deps: Parameters<typeof ClusterNode.open>[1],
): Promise<ClusterNode | undefined> {
  if (config.cluster === undefined) return undefined
  const { ClusterNode } = await import('./cluster-node.js')
  return ClusterNode.open(config, deps)
}

/** What `server.tls` needs beside everything else: the door, and the files that it and gRPC end TLS with. */
function createServerTls(config: PipelineConfig, tls: ServerTls, { registry }: ServiceMetrics, log: Log) {
  const metrics = createTlsMetrics(registry)
  const certificates = new ServerCertificates(tls, metrics, log)
  const door = new TlsDoorProcess(config, () => certificates.current, metrics, log)
  certificates.onChange((material) => door.use(material))
  return { certificates, door }
}

/** Results of the past are those that are stored; without, those that the cache keeps. */
function cacheOf(
  { cache, store: settings }: PipelineConfig,
  store: RecordStore,
  metrics: ServiceMetrics,
  log: Log,
): ResultCache {
  if (settings.durability.detections === 'memory') return createResultCache(cache, metrics, log)
  // Of a camera the store keeps more than memory could.
  const hot = createResultCache(
    cache.redis === undefined ? { ...cache, recentPerCamera: 1 } : cache,
    metrics,
    log,
  )
  return new StoredResults(hot, store, storeBounds(settings).maxAgeMs)
}

function createStore(
  config: PipelineConfig,
  epoch: string,
  { registry }: ServiceMetrics,
  log: Log,
): RecordStore {
  const { store, sinks } = config
  if (store.durability.detections === 'outbox')
    for (const name of ['maxQueuedRecords', 'maxQueuedBytes'] as const)
      if (sinks.kafka?.[name] !== undefined)
        log.warn(
          { setting: `sinks.kafka.${name}` },
          `sinks.kafka.${name} is replaced by store.maxBytes: it bounds now what waits in memory while nothing can be stored`,
        )
  return new RecordStore(
    {
      folder: store.path,
      epoch,
      detections: store.durability.detections,
      sinks: sinkNames(sinks),
      ...storeBounds(store),
    },
    createStoreMetrics(registry),
    log,
  )
}

/**
 * Before anything runs: whether the models can be read that are to run. A model server that follows its repositories waits for them.
 *
 * @throws ModelNotFoundError
 */
async function lookAtRepositories(config: PipelineConfig): Promise<UnreadableRepositories> {
  const { engines, ensemble, models, modelServer } = config
  const repositories = repositoriesOf(config)
  if (engines > 0) await checkRepositories([repositoryWith(repositories, ensemble)])
  if (!modelServer.enabled) return new Map()
  if (models.control !== 'poll') await checkRepositories(repositories)
  return unreadableOf(repositories)
}

/**
 * Nothing new is begun from here on. What was begun is finished within `drainSeconds`, and readiness and liveness are told until then;
 * then all is ended.
 */
async function stopInOrder(
  service: GantryService,
  node: ClusterNode | undefined,
  server: HttpServer,
  drainSeconds: number,
): Promise<void> {
  const deadline = new Deadline(drainSeconds * 1_000)
  server.refuse()
  await node?.cluster.handOver(deadline.leftMs)
  await Promise.all([server.answered(deadline.leftMs), service.drain(deadline.leftMs)])
  await service.stop()
  await server.stop(0)
  await node?.stop()
}

async function told(end: () => Promise<void>, drainSeconds: number, log: Log): Promise<void> {
  log.info({ drainSeconds }, 'stopping: what was begun is finished, nothing new is taken')
  await end()
  log.info('stopped')
}
