import type { ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import type { InferenceConfig } from '../../config/inference.js'
import type { ModelsConfig, ModelServerConfig } from '../../config/models.js'
import type { TlsMaterial } from '../../config/tls-files.js'
import type { TracingConfig } from '../../config/tracing.js'
import type { ErrorRecord } from '../../errors.js'
import type { Base64 } from '../../lifecycle/base64.js'
import type { LogSettings } from '../../lifecycle/log.js'
import type { AccessSettings } from '../../api/access.js'
import type { Peer } from '../../api/peer.js'
import type { CountedStatistics } from '../../runtime/counted-statistics.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { ModelView } from '../../serving/model-view.js'
import type { ModelControl } from '../../serving/repository/load-planner.js'

/** What the model server needs to know once, at its start. Paths are absolute. */
export type ModelServerSetup = Readonly<{
  repositories: readonly string[]
  /** Some of them are mirrors of object stores: control is asked for what is new before a client's load. */
  hasMirrors: boolean
  models: Omit<ModelsConfig, 'repository' | 'mirror' | 'control'> & Readonly<{ control: ModelControl }>
  inference: InferenceConfig
  /** GPUs by number, for groups of instances that name none. */
  devices: readonly number[]
  modelServer: ModelServerConfig
  /** There are cameras, which get the processor first. */
  besideCameras: boolean
  /** What the detectors of cameras run at. */
  inputSizes: readonly (readonly [model: string, size: SizePx])[]
  /** Unix socket for HTTP from control, which has checked its access. */
  socketPath: string
  /** Who may ask over a connection that control gave away. */
  access: AccessSettings & Readonly<{ maxRequestsPerMinute: number }>
  /** Unix socket of control, for requests over such a connection that are not for `/v2`. */
  returnPath: string
  /** gRPC clients come here directly; without a port, control gives their connections away. */
  grpc: Readonly<{ host: string; port: number | undefined; token: string | undefined }>
  /** Private to the service; gone when it ends. */
  tempDir: string
  /** Models that ended the process before this one, each with the reason. */
  heldOut: readonly (readonly [model: string, reason: string])[]
  /** Ends TLS of gRPC clients; absent: they speak without. */
  tls?: TlsMaterial
  /** For what must survive a restart. */
  storePath: string
  version: string
  /** `name` of the pipeline file. */
  pipeline: string
  tracing: TracingConfig
  log: LogSettings
}>

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** With what was counted elsewhere: for cameras, and of their models for API clients when this was last asked. */
export type ModelMetricsQuestion = Message<
  'metrics',
  { cameras: readonly CountedStatistics[]; clients: readonly CountedStatistics[] }
>

export type ModelMetrics = Readonly<{
  /** Prometheus text; models of cameras with what was done for them. */
  text: string
  /** What is counted here of the models of cameras. */
  clients: readonly CountedStatistics[]
  /** What was counted and is not in `clients`, as counting began anew. */
  ended: readonly CountedStatistics[]
}>

/** A question with an answer: {@link FromModelServer} `answer` carries the same `requestId`. */
export type ModelServerQuestion =
  | ModelMetricsQuestion
  /** What there is of models and how they do. */
  | Message<'models'>
  /** Take nothing new; answered when what was begun is, or after `withinMs`. */
  | Message<'drain', { withinMs: number }>

export type ModelServerAnswers = { metrics: ModelMetrics; models: readonly ModelView[]; drain: null }

/** Control -> model server. */
export type ToModelServer =
  | Message<'setup', { setup: ModelServerSetup }>
  /** GPUs for what is loaded from now on. */
  | Message<'devices', { devices: readonly number[] }>
  /** For gRPC connections that come from now on. */
  | Message<'tls', { material: TlsMaterial }>
  /** The first camera came. */
  | Message<'giveWay'>
  /** Comes with the socket of a client, of which `head` was read. */
  | Message<'connection', { head: Base64; peer?: Peer }>
  /** Comes with the socket of a gRPC client, of which nothing was read. */
  | Message<'grpcConnection'>
  | Message<'ask', { requestId: number; question: ModelServerQuestion }>
  /** What was asked for by `refresh` with the same number is done, as far as it can be. */
  | Message<'refreshed', { refreshId: number }>
  | Message<'stop', { drainMs: number }>

/** What was to be loaded and is not, as the index tells it. */
export type LoadFailure = Readonly<{ name: string; reason: string }>

/** A model that serves while sizes of its batches are to come: how many have run. */
export type ModelWarming = Readonly<{ model: string; version: string; warm: number; toCome: number }>

/** State of the process, once a second; its absence tells a hung one. */
export type ModelServerBeat = Readonly<{
  rssBytes: number
  cpuSeconds: number
  loopP99Ms: number
  /** Models that are to serve, and those of them that do. */
  models: Readonly<{ total: number; ready: number }>
  /** Repositories that cannot be read, each with the reason. */
  unreadable: readonly (readonly [repository: string, reason: string])[]
  /** Where gRPC listens; `null` with the reason while it cannot. */
  grpcPort: number | null
  grpcReason: string
  /** Where models run, and where not though they should. */
  providers: readonly ProviderUse[]
  warming: readonly ModelWarming[]
}>

/** Model server -> control. */
export type FromModelServer =
  | Message<'online'>
  /** It listens; models are loaded from here on. */
  | Message<'ready'>
  /** Each model that is to be loaded by itself serves, but for these, and repositories that cannot be read. */
  | Message<'loaded', { failed: readonly LoadFailure[] }>
  | Message<'failed', { error: ErrorRecord }>
  /** Nothing runs any more on a GPU in this process, which asks to be ended for it. */
  | Message<'deviceFailed', { deviceId: number; reason: string }>
  | Message<'beat', { beat: ModelServerBeat }>
  /** A model that was held out is tried again. */
  | Message<'released', { model: string }>
  /** Fetch what is new of repositories in object stores. */
  | Message<'refresh', { refreshId: number }>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'stopped'>
