import type { RecentPage, RecentQuery, CacheHealth } from '../cache/result-cache.js'
import type { StoreHealth } from '../store/store-state.js'
import type { CameraPatch, NewCamera } from '../config/camera.js'
import type { CameraPreviewRequest } from '../config/camera-preview.js'
import type { EnsembleChangeRequest } from '../config/ensemble-change.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import type { CameraTime } from '../coverage/coverage-sums.js'
import type { DetectorInfo } from '../detector/camera-detector.js'
import type { SnapshotFacts } from '../cameras/snapshot-facts.js'
import type { CameraView } from '../cameras/camera-view.js'
import type { ClusterState } from '../cluster/cluster.js'
import type { CameraCost, Headroom, ServiceLoad } from '../cameras/headroom.js'
import type { CameraPreview } from './preview-schema.js'
import type { StreamUpstream } from './stream-upstream.js'
import type { ProcessHealth, WokenHealth } from '../lifecycle/process-health.js'
import type { SinkHealth } from '../delivery/result-sink.js'
import type { ModelView, ModelWork } from '../serving/model-view.js'
import type { ModelControl } from '../serving/repository/load-planner.js'
import type { GpuFigures } from '../metrics/gpu-metrics.js'

export type EngineHealth = Omit<ProcessHealth, 'state'> &
  Readonly<{
    index: number
    /** `left`: its GPU failed and is tried again later; engines on others have its cameras. */
    state: ProcessHealth['state'] | 'left'
    /** GPU that it is bound to, where there are several. */
    device: number | null
    detector: (DetectorInfo & Readonly<{ instancesReady: number }>) | null
    cameras: number
  }>

export type ModelServerHealth = WokenHealth &
  Readonly<{
    /** Models that are to serve, and those of them that do. */
    models: Readonly<{ total: number; ready: number }>
    /** Where gRPC listens; `null` while it does not. */
    grpcPort: number | null
    /** Why models do not run on a provider that is installed, each once. */
    providerFailures: readonly string[]
  }>

/** The process that serves WebSocket clients. */
export type StreamHealth = WokenHealth & Readonly<{ clients: number }>

/**
 * `ready` decides the status code of `/readyz`: engines do, what ends TLS, and whether the model repositories can be read. Kafka, Redis, cameras, the
 * stream and the process of the model server are details that never do.
 */
export type Readiness = Readonly<{
  ready: boolean
  /** Why it is not ready, and what runs otherwise than it was asked for. */
  reasons: readonly string[]
  engines: readonly EngineHealth[]
  sinks: readonly SinkHealth[]
  cache: CacheHealth
  store: StoreHealth
  stream: StreamHealth
  /** `null` where the service has none. */
  modelServer: ModelServerHealth | null
  /** What ends TLS on the ports of HTTP; `null` where nothing does. */
  tlsDoor: ProcessHealth | null
  cameras: Readonly<{ total: number; byState: Readonly<Record<string, number>> }>
  /** This node's place in its cluster; `null` where there is none. */
  cluster: ClusterState | null
}>

/** About how many more cameras it is asked. */
export type HeadroomQuestion = Readonly<{
  /** Id of the camera that the others are like; absent: like all, on average. */
  like?: string | undefined
  sampleFps?: number | undefined
  /** Instead of `latencyObjectiveMs`. */
  latencyMs?: number | undefined
}>

/** How many more cameras there is room for, and by what arithmetic; `null` where it is not known. */
export type HeadroomView = Readonly<{
  cameras: number | null
  limitedBy: Headroom['limitedBy'] | null
  reason: string
  objectiveMs: number
  now: Readonly<
    Pick<ServiceLoad, 'cameras' | 'comingCameras' | 'cores' | 'instances' | 'p99Ms'> & { measuredAt: string }
  > | null
  perCamera: (CameraCost & Readonly<Pick<ServiceLoad, 'cpuMsPerFrame' | 'runMs'>>) | null
  predicted: Headroom['predicted'] | null
  /** Of all nodes; absent where the service is none of a cluster. */
  cluster?: ClusterHeadroom
}>

/** Room of the nodes of a cluster. */
export type ClusterHeadroom = Readonly<{
  /** How many may come, as they go to nodes on average, before the first of these has no room; `null` while one node's is not known. */
  cameras: number | null
  reason: string
  /** Room of all nodes whose room is known, wherever cameras would go. */
  sum: number
  nodes: readonly Readonly<
    Pick<HeadroomView, 'cameras' | 'limitedBy' | 'reason'> & { node: string; slots: number }
  >[]
  incomplete?: readonly string[]
}>

/** Whose time is asked for; wall times in milliseconds. */
export type CoverageQuestion = Readonly<{
  cameraId?: string | undefined
  fromMs: number
  toMs: number
  withSpans: boolean
  /** Asked by another node, which sums spans up: it gets as many of them as sums are made of. */
  isForSums?: boolean
}>

/** Time of cameras, watched and blind. */
export type CoverageView = Readonly<{
  fromMs: number
  toMs: number
  items: readonly CameraTime[]
  /** Of a cluster: nodes whose part may be missing, each with the reason; absent where none are. */
  incomplete?: readonly string[]
}>

export const ensembleStates = ['steady', 'loading', 'comparing', 'trial'] as const
export const ensembleOutcomes = ['kept', 'taken_back', 'refused'] as const

/** How the last change of the ensemble ended. */
export type EnsembleOutcome = Readonly<{
  name: string
  outcome: (typeof ensembleOutcomes)[number]
  /** With figures, for people. */
  reason: string
  /** 0..1; `null` where no frame was compared. */
  agreement: number | null
  comparedFrames: number
  /** Capture to publish of the worst camera; `null` where none was measured. */
  p99Ms: Readonly<{ before: number | null; after: number | null }>
  /** RFC 3339, UTC. */
  at: string
}>

/** Which ensemble the cameras run, and which one is being tried. */
export type EnsembleView = Readonly<{
  /** In force: what engines start with, and what the cameras run but for a trial. */
  name: string
  /** What the pipeline file says. */
  configured: string
  state: (typeof ensembleStates)[number]
  to: Readonly<{ name: string; since: string }> | null
  last: EnsembleOutcome | null
}>

/** What models did for cameras, in all engines. */
export type CameraWork = Readonly<{
  version: string
  frames: number
  runs: number
  /** Frames that wait for an instance now. */
  waiting: number
  failures: number
  /** Of the model alone, in all frames. */
  inferMs: number
  /** From arrival to answer; `null` before the first. */
  latencyMs: ModelWork['latencyMs']
}>

/** Models of API clients and of cameras, and how they do. */
export type ModelsView = Readonly<{
  server: Readonly<{
    state: ModelServerHealth['state'] | 'off'
    reason: string
    /** When models are loaded; `null` where there is no model server. */
    control: ModelControl | null
    /** Whether `items` are what the model server says now; else they are models of cameras alone. */
    isTold: boolean
  }>
  /** What the cameras run. */
  ensemble: string
  items: readonly (ModelView & Readonly<{ forCameras: readonly CameraWork[] }>)[]
}>

/** Where records go, as far as a reader has to know it. */
export type SinkPlaces = Readonly<{
  /** `null` where no broker is configured. */
  kafka: KafkaPlace | null
  webhooks: readonly Readonly<{ name: string; origin: string; signed: boolean; batches: boolean }>[]
  mqtt: readonly Readonly<{
    name: string
    /** As URL, without a login. */
    broker: string
    wantsLogin: boolean
    topicPrefix: string
    homeAssistant: boolean
  }>[]
}>

export type KafkaPlace = Readonly<{
  brokers: readonly string[]
  topic: string
  /** How a client has to connect. */
  security: 'PLAINTEXT' | 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'
  saslMechanism: string | null
}>

/** A camera that was added or changed, with what is to be told of that. */
export type AdmittedCamera = CameraView & Readonly<{ warnings?: readonly string[] }>

/** A JPEG with what is to be told of it. */
export type TakenSnapshot = SnapshotFacts & Readonly<{ jpeg: Uint8Array }>

/** What may be at hand, or has to be asked for. */
export type Awaitable<T> = T | Promise<T>

/** What the HTTP server may ask of the running service. Errors are `GantryError`s. */
export interface Gantry {
  readonly name: string
  readonly version: string
  readonly sinkPlaces: SinkPlaces
  readonly stream: StreamUpstream
  /** This node alone, where the service is one of a cluster; absent where it has no others beside it. */
  readonly onThisNode?: Gantry
  cameras(): Awaitable<readonly CameraView[]>
  /** @throws CameraNotFoundError */
  camera(id: string): Awaitable<CameraView>
  /** @throws CameraExistsError, CameraSettingError, CameraUrlError, AdmissionRefusedError */
  addCamera(camera: NewCamera): Promise<AdmittedCamera>
  patchCamera(id: string, patch: CameraPatch): Promise<AdmittedCamera>
  /**
   * Opens a camera that may be added or changed, until its first picture. Nothing of it is kept.
   *
   * @param signal - whoever asks is gone.
   * @throws CameraSettingError, CameraUrlError, PreviewsBusyError
   */
  previewCamera(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview>
  removeCamera(id: string): Promise<void>
  /**
   * JPEG of what a camera sees: at its own resolution where it can be had and `own` asks for it, else as the model saw it.
   *
   * @throws NotFoundError while there is none; an error `GANTRY_SOURCE_FAILED` when the main stream gives none.
   */
  snapshot(id: string, wishes: Readonly<{ overlay: boolean; own: boolean }>): Promise<TakenSnapshot>
  /** Hands a JPEG or PNG to a camera whose URL is `push:`. Resolves once it is accepted for analysis. */
  pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>>
  latest(id: string): Promise<DetectionsMessage | undefined>
  recent(query: RecentQuery): Promise<RecentPage>
  /** @throws CoverageTooLongError */
  coverage(question: CoverageQuestion): Promise<CoverageView>
  readiness(): Readiness
  /** @throws CameraNotFoundError of a camera that is to be the measure. */
  headroom(question: HeadroomQuestion): Awaitable<HeadroomView>
  ensemble(): EnsembleView
  /** Asks the model server, which is not woken for it. Never rejects. */
  models(): Promise<ModelsView>
  /**
   * Begins to try another ensemble on the cameras; what becomes of it is in {@link ensemble}.
   *
   * @throws EnsembleBusyError; for an ensemble that cannot be used what `checkCameraModel` throws. Then nothing has changed.
   */
  changeEnsemble(request: EnsembleChangeRequest): Promise<EnsembleView>
  /** NVIDIA's cards of the machine, by their number; none where there are none, or they cannot be asked. */
  gpus(): readonly GpuFigures[]
  /** Prometheus text format, in pieces. */
  metrics(): AsyncIterable<string>
}
