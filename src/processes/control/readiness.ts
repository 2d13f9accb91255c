import type { EngineHealth, Readiness } from '../../api/gantry.js'
import type { ClusterState } from '../../cluster/cluster.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { ResultCache } from '../../cache/result-cache.js'
import type { ResultSink } from '../../delivery/result-sink.js'
import type { StoreHealth } from '../../store/store-state.js'
import type { EngineProcess } from '../engine/engine-process.js'
import type { ProcessHealth } from '../../lifecycle/process-health.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'
import type { StreamProcess } from '../stream/stream-process.js'
import { providerFailures } from './provider-report.js'

/** The parts of a service that are asked how they stand. */
export type ServiceParts = Readonly<{
  engines: readonly EngineProcess[]
  directory: CameraDirectory
  sinks: readonly ResultSink[]
  cache: ResultCache
  store: Readonly<{ health: StoreHealth }>
  stream: StreamProcess
  /** Those of models, as far as they lie in object stores. */
  repositories: Readonly<{ reasons: readonly string[] }>
  modelServer: ModelServerProcess | undefined
  /** `undefined` where nothing ends TLS. */
  tlsDoor: Readonly<{ health: ProcessHealth }> | undefined
  /** Absent where the service is no node of a cluster. */
  cluster?: Readonly<{ health: ClusterState }> | undefined
}>

/** Whether a service can analyse frames, and why not. */
export function readinessOf(parts: ServiceParts, isDraining: boolean): Readiness {
  const { directory, modelServer, tlsDoor } = parts
  const engines = engineHealth(parts)
  // Others have the cameras of one that is left, unless there are none.
  const anyReady = engines.some(({ state }) => state === 'ready')
  const left = engines.filter(({ state }) => anyReady && state === 'left')
  const waiting = engines.filter((engine) => engine.state !== 'ready' && !left.includes(engine))
  const inTheWay = [
    ...(isDraining ? ['the service is shutting down'] : []),
    ...waiting.map(standing),
    ...doorReasons(tlsDoor?.health),
    ...(modelServer?.reasons ?? []),
    ...clusterReasons(parts.cluster?.health, 'joining'),
  ]
  return {
    ready: inTheWay.length === 0,
    reasons: [
      ...inTheWay,
      ...left.map(standing),
      ...providerFailures(parts.engines, modelServer),
      ...degraded(parts.store.health),
      ...parts.repositories.reasons,
      ...clusterReasons(parts.cluster?.health, 'cut_off'),
      ...clusterReasons(parts.cluster?.health, 'member'),
      ...engines.flatMap(strangeScores),
      ...engines.flatMap(warming),
      ...(modelServer?.warming ?? []),
    ],
    engines,
    sinks: parts.sinks.map((sink) => sink.health),
    cache: parts.cache.health,
    store: parts.store.health,
    stream: parts.stream.health,
    modelServer: modelServer?.health ?? null,
    tlsDoor: tlsDoor?.health ?? null,
    cameras: { total: directory.size, byState: camerasByState(directory) },
    cluster: parts.cluster?.health ?? null,
  }
}

function engineHealth({ directory, engines }: Pick<ServiceParts, 'directory' | 'engines'>): EngineHealth[] {
  const cameras = [...directory]
  return engines.map(({ health }) => ({
    ...health,
    cameras: cameras.filter((entry) => entry.engine === health.index).length,
  }))
}

function camerasByState(directory: CameraDirectory): Record<string, number> {
  const byState: Record<string, number> = {}
  for (const { status } of directory) byState[status.state] = (byState[status.state] ?? 0) + 1
  return byState
}

/** While it is away, nobody listens on the ports. */
export function doorReasons(door: ProcessHealth | undefined): readonly string[] {
  if (door === undefined || door.state === 'ready') return []
  return [`the process that ends TLS is ${door.state}${door.reason && `: ${door.reason}`}`]
}

function clusterReasons(cluster: ClusterState | undefined, state: ClusterState['state']): readonly string[] {
  if (cluster?.state !== state || cluster.reason === '') return []
  return [`node ${cluster.node} ${clusterWords[state]} cluster ${cluster.id}: ${cluster.reason}`]
}

const clusterWords = { joining: 'has not joined', cut_off: 'is cut off from', member: 'is a member of' }

/** Results go on, and are lost with the process. */
function degraded({ state, reason }: StoreHealth): readonly string[] {
  return state === 'degraded' ? [`results are not stored: ${reason}`] : []
}

function standing({ index, state, reason }: EngineHealth): string {
  return `engine ${index} is ${state}${reason && `: ${reason}`}`
}

/** Boxes are left out for it; the others are delivered. */
function strangeScores({ index, detector }: EngineHealth): readonly string[] {
  const { scoreFault } = detector ?? {}
  return scoreFault === undefined
    ? []
    : [`engine ${index} left out ${scoreFault.boxes} boxes: ${scoreFault.reason}`]
}

/** How far an engine is with the sizes of its batches, while some are to come. */
function warming({ index, state, detector }: EngineHealth): readonly string[] {
  const { warm = [], toCome = [] } = detector?.sizes ?? {}
  if (state !== 'ready' || toCome.length === 0) return []
  return [`engine ${index} has warmed ${warm.length} of ${warm.length + toCome.length} sizes of batches`]
}
