import type { RecentPage, RecentQuery, CacheHealth } from '../cache/result-cache.js'
import type { CameraPatch, NewCamera } from '../config/camera.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import type { DetectorInfo } from '../detector/camera-detector.js'
import type { CameraView } from '../cameras/camera-view.js'
import type { StreamUpstream } from './stream-upstream.js'
import type { ProcessHealth } from '../lifecycle/process-health.js'
import type { SinkHealth } from '../delivery/result-sink.js'

export type EngineHealth = ProcessHealth &
  Readonly<{ index: number; detector: DetectorInfo | null; cameras: number }>

export type ModelServerHealth = ProcessHealth &
  Readonly<{
    /** Models that are to serve, and those of them that do. */
    models: Readonly<{ total: number; ready: number }>
    /** Where gRPC listens; `null` while it does not. */
    grpcPort: number | null
    /** Why models do not run on a provider that is installed, each once. */
    providerFailures: readonly string[]
  }>

/** The process that serves WebSocket clients. */
export type StreamHealth = ProcessHealth & Readonly<{ clients: number }>

/**
 * `ready` decides the status code of `/readyz`: engines do, and whether the model repositories can be read. Kafka, Redis, cameras, the
 * stream and the process of the model server are details that never do.
 */
export type Readiness = Readonly<{
  ready: boolean
  /** Why it is not ready, and what runs otherwise than it was asked for. */
  reasons: readonly string[]
  engines: readonly EngineHealth[]
  sinks: readonly SinkHealth[]
  cache: CacheHealth
  stream: StreamHealth
  /** `null` where the service has none. */
  modelServer: ModelServerHealth | null
  cameras: Readonly<{ total: number; byState: Readonly<Record<string, number>> }>
}>

/** What the HTTP server may ask of the running service. Errors are `GantryError`s. */
export interface Gantry {
  readonly name: string
  readonly version: string
  readonly stream: StreamUpstream
  cameras(): readonly CameraView[]
  /** @throws CameraNotFoundError */
  camera(id: string): CameraView
  /** @throws CameraExistsError, CameraSettingError, CameraUrlError */
  addCamera(camera: NewCamera): Promise<CameraView>
  patchCamera(id: string, patch: CameraPatch): Promise<CameraView>
  removeCamera(id: string): Promise<void>
  /**
   * JPEG of the last analysed picture, or of the main stream of a camera whose sub-stream is analysed.
   *
   * @throws NotFoundError while there is none; an error `GANTRY_SOURCE_FAILED` when the main stream gives none.
   */
  snapshot(id: string, overlay: boolean): Promise<Uint8Array>
  /** Hands a JPEG or PNG to a camera whose URL is `push:`. Resolves once it is accepted for analysis. */
  pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>>
  latest(id: string): Promise<DetectionsMessage | undefined>
  recent(query: RecentQuery): Promise<RecentPage>
  readiness(): Readiness
  /** Prometheus text format, in pieces. */
  metrics(): AsyncIterable<string>
}
