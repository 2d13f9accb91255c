import { randomBytes } from 'node:crypto'
import { collectDefaultMetrics } from 'prom-client'
import { createResultCache } from '../cache/create-cache.js'
import { repositoriesOf, type LoadedPipeline } from '../config/load.js'
import { repositoryWith } from '../inference/model-repository.js'
import { packageVersion } from './package-version.js'
import { wallMs } from '../lifecycle/clock.js'
import { DescriptorWatch } from '../lifecycle/descriptor-watch.js'
import type { Log } from '../lifecycle/log.js'
import { keepYoungGenerationSmall } from '../lifecycle/v8-flags.js'
import { createServiceMetrics } from '../metrics/service-metrics.js'
import { isLoopbackHost } from '../server/access.js'
import { grpcPortFree } from '../server/free-port.js'
import { createHttpServer, type HttpServer } from '../server/http-server.js'
import { KafkaSink } from '../sinks/kafka-sink.js'
import { CameraDirectory } from './camera-directory.js'
import { CameraStore } from './camera-store.js'
import type { Gantry } from './gantry.js'
import { ModelServerProcess } from './model-server-process.js'
import { GantryService } from './service.js'
import { StreamProcess } from './stream-process.js'

/** Share of the stop budget that open HTTP requests may use. */
const serverShare = 0.2
/** Longest that the model server of a service that was killed may hold its port. */
const grpcPortFreeWithinMs = 2_000

/** A service that answers. */
export type RunningService = Readonly<{
  gantry: Gantry
  /** Where it listens, with the ports actually taken. */
  httpUrl: string
  metricsUrl: string
  /** Idempotent, never rejects; takes at most `drainMs` and a second. */
  stop(drainMs: number): Promise<void>
}>

/**
 * Builds the service from its settings and starts it: server first, so that readiness can be asked for while models load.
 *
 * @throws GantryError when it cannot run: port taken, model unusable, camera URL refused. Nothing is left running then.
 */
export async function runService(
  { config, baseDir }: LoadedPipeline,
  { log }: Readonly<{ log: Log }>,
): Promise<RunningService> {
  const metrics = createServiceMetrics()
  // Memory, CPU, handles and loop delay of this process: `process_*` and `nodejs_*`.
  collectDefaultMetrics({ register: metrics.registry, eventLoopMonitoringPrecision: 50 })
  const version = packageVersion()
  // Base 36, because it is part of cursors and record ids.
  const epoch = wallMs().toString(36) + BigInt(`0x${randomBytes(4).toString('hex')}`).toString(36)
  const mediaRoot = config.mediaRoot ?? baseDir
  const directory = new CameraDirectory({
    store: new CameraStore(config.store.path),
    metrics,
    engines: config.engines,
    mediaRoot,
    cameraNetworks: config.cameraNetworks,
    // Who asks a service on loopback is on this machine, and needs no camera to reach what listens there.
    loopbackClosed: !isLoopbackHost(config.server.host),
  })
  await directory.load(config.cameras)
  const { kafka } = config.sinks
  const modelServer = config.modelServer.enabled
    ? new ModelServerProcess(config, version, metrics, log)
    : undefined
  const service = new GantryService({
    name: config.name,
    version,
    epoch,
    engines: config.engines,
    engineSetup: {
      modelRepository: repositoryWith(repositoriesOf(config), config.ensemble),
      ensemble: config.ensemble,
      inference: config.inference,
      maxConcurrentConnects: config.maxConcurrentConnects,
      mediaRoot,
      cameraNetworks: config.cameraNetworks,
      log: config.log,
    },
    directory,
    cache: createResultCache(config.cache, metrics, log),
    sinks: kafka ? [new KafkaSink(kafka, metrics, log)] : [],
    stream: new StreamProcess(config, { service: config.name, version, epoch }, metrics, log),
    metrics,
    modelServer,
    log,
  })
  const { maxRequestBytes } = config.modelServer
  const models = modelServer && { upstream: modelServer, maxRequestBytes }
  const server = createHttpServer({
    gantry: service,
    settings: config.server,
    log,
    ...(models === undefined ? {} : { models }),
  })
  new DescriptorWatch(log)
  const { host, grpcPort } = config.server
  return start(service, server, async () => {
    if (modelServer) await grpcPortFree(host, grpcPort, grpcPortFreeWithinMs)
  })
}

/** @param ports - throws when a port of another process than this is taken. */
async function start(
  service: GantryService,
  server: HttpServer,
  ports: () => Promise<void>,
): Promise<RunningService> {
  const stop = async (drainMs: number) => {
    server.drain()
    await service.stop(drainMs * (1 - serverShare))
    await server.stop(drainMs * serverShare)
  }
  try {
    await server.start(new AbortController().signal)
    await ports()
    await service.start()
    keepYoungGenerationSmall()
  } catch (error) {
    await stop(0)
    throw error
  }
  const { address } = server
  if (!address) throw new TypeError('the server runs without an address')
  const httpUrl = address.url.replace(/\/$/, '')
  return {
    gantry: service,
    httpUrl,
    metricsUrl: httpUrl.replace(/:\d+$/, `:${address.metricsPort}/metrics`),
    stop,
  }
}
