import type { RecentPage, RecentQuery, ResultCache } from '../../cache/result-cache.js'
import type { CameraConfig, CameraPatch, NewCamera } from '../../config/camera.js'
import type { CameraPreviewRequest } from '../../config/camera-preview.js'
import type { EnsembleChangeRequest } from '../../config/ensemble-change.js'
import type { FromEngine } from '../engine/protocol.js'
import { detectionsRecordId } from '../../messages/cloud-event.js'
import type { DetectorInfo } from '../../detector/camera-detector.js'
import { closedDetectionsJson, type DetectionsText } from '../../messages/detections-json.js'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { type GpuFigures, GpuMetrics } from '../../metrics/gpu-metrics.js'
import { metricsText } from '../../metrics/metrics-text.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { ResultSink } from '../../delivery/result-sink.js'
import type { RecordStore } from '../../store/record-store.js'
import type { CoverageStore } from '../../coverage/coverage-store.js'
import type { Cluster } from '../../cluster/cluster.js'
import type { NodeCapacity } from '../../cluster/node-weights.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { EngineProcess } from '../engine/engine-process.js'
import { Capacity, type CapacityDeps } from './capacity.js'
import type { OwnMessage } from '../child-messages.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'
import type { StreamProcess } from '../stream/stream-process.js'
import type { CameraPreview } from '../../api/preview-schema.js'
import { coverageRecord, CoverageWatch } from './coverage-watch.js'
import { CameraEngines } from './camera-engines.js'
import { CameraRequests } from './camera-requests.js'
import type { TlsDoorProcess } from '../tls-door/tls-door-process.js'
import { CameraMoves } from './camera-moves.js'
import { camerasEnsemble } from './cameras-ensemble.js'
import { DecoderBudget } from './decoder-budget.js'
import { EngineMetrics } from './engine-metrics.js'
import { Engines, type EnginesDeps } from './engines.js'
import type { EnsembleChange } from './ensemble-change.js'
import type { FrameTraces } from './frame-traces.js'
import type { GpuWatch } from './gpu-watch.js'
import { ModelCounts } from './model-counts.js'
import { Outlet } from './outlet.js'
import { modelsView } from './models-view.js'
import { measureProviders } from './provider-report.js'
import { readinessOf } from './readiness.js'
import type { StoredRepositories } from './stored-repositories.js'
import type { CameraView } from '../../cameras/camera-view.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type {
  AdmittedCamera,
  CoverageQuestion,
  CoverageView,
  EnsembleView,
  Gantry,
  HeadroomQuestion,
  HeadroomView,
  ModelsView,
  Readiness,
  SinkPlaces,
  TakenSnapshot,
} from '../../api/gantry.js'

export type ServiceDeps = EnginesDeps &
  Pick<CapacityDeps, 'admission' | 'latencyObjectiveMs'> &
  Readonly<{
    name: string
    version: string
    sinkPlaces: SinkPlaces
    /** Tells the records of this run from those of another with the same numbers. */
    epoch: string
    directory: CameraDirectory
    coverage: CoverageStore
    cache: ResultCache
    store: RecordStore
    /** What this service is a node of; absent where it has all cameras alone. */
    cluster?: Pick<Cluster, 'health' | 'measure' | 'ownerMark'>
    sinks: readonly ResultSink[]
    stream: StreamProcess
    metrics: ServiceMetrics
    gpus: GpuWatch
    decoding: Readonly<{ share: number; intervalMs: number }>
    repositories: Pick<StoredRepositories, 'reasons' | 'refresh'>
    /** `undefined` where API clients get no models. */
    modelServer: ModelServerProcess | undefined
    tlsDoor: TlsDoorProcess | undefined
    /** `undefined` where no frame is traced. */
    traces: FrameTraces | undefined
  }>

/** The running service: cameras and engines on one side, sinks, cache and clients on the other. */
export class GantryService implements Gantry {
  readonly name: string
  readonly version: string
  readonly sinkPlaces: SinkPlaces
  readonly stream: StreamProcess
  readonly #outlet: Outlet
  readonly #engines: Engines
  readonly #engineMetrics: EngineMetrics
  readonly #deps: ServiceDeps
  readonly #modelCounts = new ModelCounts()
  readonly #capacity: Capacity
  readonly #gpuMetrics = new GpuMetrics(() => this.gpus())
  #draining = false
  readonly #moves: CameraMoves
  readonly #decoders: DecoderBudget
  readonly #ensemble: EnsembleChange
  readonly #camerasOf: CameraEngines
  readonly #requests: CameraRequests
  readonly #coverage: CoverageWatch

  constructor(deps: ServiceDeps) {
    this.#deps = deps
    this.name = deps.name
    this.version = deps.version
    this.sinkPlaces = deps.sinkPlaces
    this.stream = deps.stream
    this.#outlet = new Outlet(deps)
    this.#engineMetrics = new EngineMetrics(deps.metrics)
    deps.engineDevices.forEach((_, index) => this.#engineMetrics.begins(index))
    this.#engines = new Engines(deps, {
      ready: (index, detector) => this.#engineReady(index, detector),
      gone: (index, reason) => this.#engineGone(index, reason),
      message: (index, message) => this.#receive(index, message),
      result: (index, result) => this.#publish(index, result),
    })
    this.#capacity = new Capacity({ ...deps, instances: () => this.#engines.instances })
    this.#decoders = new DecoderBudget({
      ...deps.decoding,
      gpus: deps.gpus,
      isLive: (cameraId) => deps.directory.find(cameraId)?.status.state === 'live',
      metrics: deps.metrics,
      log: deps.log,
      hasRoom: ({ engine, cameraId }) => this.#engines.all[engine]?.tell({ type: 'cardHasRoom', cameraId }),
    })
    this.#ensemble = camerasEnsemble(deps, this.#engines)
    this.#camerasOf = new CameraEngines(deps.directory, this.#engines.all)
    this.#requests = new CameraRequests({
      ...deps,
      engines: this.#camerasOf,
      capacity: this.#capacity,
      removed: (id) => this.#coverage.removed(id),
    })
    this.#coverage = new CoverageWatch({
      ...deps,
      store: deps.coverage,
      ended: (span) => this.#outlet.publishEvent(coverageRecord(span)),
    })
    this.#moves = new CameraMoves({
      directory: deps.directory,
      engines: this.#engines.all,
      assign: (entry) => this.#camerasOf.assign(entry),
      log: deps.log,
    })
    this.stream.onPictureCameras = (cameras) =>
      this.#engines.tellAll({ type: 'pictures', cameras: [...cameras] })
  }

  /** Starts the engines and gives them their cameras. @throws GantryError when the model cannot be used. */
  async start(): Promise<void> {
    this.#deps.gpus.start()
    const store = Promise.all([this.#outlet.start(), this.#coverage.start()])
    // A result needs its place in the store; where there are no cameras there is none.
    if (this.#deps.engineDevices.length > 0) await store
    const cameras = this.#engines.start()
    // Cameras first: a service is ready without its model server. But an engine that waits for its GPU holds nobody up.
    await Promise.race([cameras, this.#engines.firstEnd])
    if (this.#deps.loads.isMeasured) this.#moves.start()
    this.#capacity.watch.start()
    if (this.#deps.directory.size > 0) this.#deps.modelServer?.giveWay()
    void this.#deps.modelServer?.start()
    await cameras
  }

  /** From now on not ready; idempotent. */
  refuse(): void {
    this.#draining = true
    this.#engines.refuse()
    this.#requests.close()
    this.#ensemble.stop()
  }

  /**
   * Finishes what was begun, for so long at most: model clients are answered, while cameras end at once, and what was seen on them goes to
   * sinks and viewers. Never rejects.
   */
  async drain(withinMs: number): Promise<void> {
    this.refuse()
    const deadline = new Deadline(withinMs)
    await Promise.all([this.#deps.modelServer?.drain(deadline.leftMs), this.#finishCameras(deadline)])
  }

  async #finishCameras(deadline: Deadline): Promise<void> {
    this.#moves.close()
    this.#coverage.close()
    this.#capacity.watch.stop()
    await this.#engines.stop(deadline.leftMs)
    await this.#outlet.stop(deadline.leftMs)
  }

  /** Ends what {@link drain} left, which others may have needed until now. Idempotent, never rejects. */
  async stop(): Promise<void> {
    await Promise.all([this.#deps.modelServer?.stop(), this.#deps.cache.stop(), this.#deps.gpus.stop()])
  }

  cameras(): readonly CameraView[] {
    return this.#deps.directory.views()
  }

  camera(id: string): CameraView {
    return this.#deps.directory.get(id).view()
  }

  addCamera(camera: NewCamera): Promise<AdmittedCamera> {
    return this.#requests.add(camera)
  }

  patchCamera(id: string, patch: CameraPatch): Promise<AdmittedCamera> {
    return this.#requests.patch(id, patch)
  }

  removeCamera(id: string): Promise<void> {
    return this.#requests.remove(id)
  }

  /** Whoever keeps the cameras says that one runs here, with these settings. */
  follow(camera: CameraConfig): Promise<void> {
    return this.#requests.follow(camera)
  }

  /** And that one does not run here any more. @param isRemoved - nor anywhere else */
  release(id: string, isRemoved: boolean): Promise<void> {
    return this.#requests.release(id, isRemoved)
  }

  previewCamera(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview> {
    return this.#requests.preview(asked, signal)
  }

  snapshot(id: string, wishes: Readonly<{ overlay: boolean; own: boolean }>): Promise<TakenSnapshot> {
    return this.#requests.snapshot(id, wishes)
  }

  pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>> {
    return this.#requests.push(id, image)
  }

  headroom(question: HeadroomQuestion): HeadroomView {
    return this.#capacity.headroom(question)
  }

  /** What this service could analyse as a node of a cluster. */
  nodeCapacity(): NodeCapacity {
    return this.#capacity.ofNode()
  }

  coverage(question: CoverageQuestion): Promise<CoverageView> {
    return this.#coverage.view(question)
  }

  ensemble(): EnsembleView {
    return this.#ensemble.view
  }

  models(): Promise<ModelsView> {
    return modelsView(this.#deps.modelServer, this.#modelCounts.cameras, this.#ensemble.view.name)
  }

  changeEnsemble(request: EnsembleChangeRequest): Promise<EnsembleView> {
    return this.#ensemble.begin(request)
  }

  async latest(id: string): Promise<DetectionsMessage | undefined> {
    this.#deps.directory.get(id)
    return this.#deps.cache.latest(id)
  }

  async recent(query: RecentQuery): Promise<RecentPage> {
    return this.#deps.cache.recent(query)
  }

  readiness(): Readiness {
    return readinessOf({ ...this.#deps, engines: this.#engines.all }, this.#draining)
  }

  gpus(): readonly GpuFigures[] {
    return this.#deps.gpus.gpus
  }

  async *metrics(): AsyncGenerator<string, void> {
    const { metrics, sinks, modelServer } = this.#deps
    for (const { health } of sinks) {
      metrics.sinkUp.set({ sink: health.name }, health.state === 'up' ? 1 : 0)
      metrics.sinkQueued.set({ sink: health.name }, health.queued)
    }
    measureProviders(metrics, this.#engines.all, modelServer)
    this.#decoders.measure()
    this.#coverage.measure()
    this.#capacity.measure(metrics)
    this.#deps.cluster?.measure()
    const models = this.#modelCounts.text(async (question) => modelServer?.modelMetrics(question))
    await this.stream.measure()
    yield* metricsText(metrics.registry)
    yield* this.#gpuMetrics.text()
    const text = await models
    if (text) yield text
  }

  async #tellCard(
    engine: EngineProcess | undefined,
    { requestId, cameraId }: Extract<FromEngine, { type: 'wantsCard' }>,
  ): Promise<void> {
    if (engine === undefined) return
    const { index, deviceId } = engine.setup
    const answer = await this.#decoders.ask({ engine: index, cameraId, device: deviceId })
    engine.tell({ type: 'card', requestId, answer })
  }

  #engineReady(index: number, { detector, format }: DetectorInfo): void {
    this.#deps.modelServer?.camerasRun(detector.name, format.input)
    this.#engineMetrics.ready(index)
    this.#ensemble.interrupt(`engine ${index} came up meanwhile`)
    this.#decoders.engineReady()
    this.#engines.all[index]?.tell({ type: 'pictures', cameras: [...this.stream.pictureCameras] })
    for (const entry of this.#deps.directory) if (entry.engine === index) this.#camerasOf.assign(entry)
    this.#moves.leaveFailed()
  }

  #engineGone(index: number, reason: string): void {
    this.#engineMetrics.gone(index)
    this.#ensemble.interrupt(`engine ${index} ended: ${reason}`)
    this.#modelCounts.engineGone(index)
    this.#decoders.engineGone(index)
    for (const entry of this.#deps.directory) if (entry.engine === index) entry.engineGone(reason)
    this.#deps.directory.engineGone(index)
    this.#moves.engineGone(index)
  }

  #receive(index: number, message: Exclude<OwnMessage<FromEngine>, { type: 'wantsCameraShapes' }>): void {
    const { directory, metrics } = this.#deps
    switch (message.type) {
      case 'status':
        if (!directory.leaving(message.cameraId)) directory.find(message.cameraId)?.changed(message.status)
        return
      case 'removed': {
        const leaving = directory.leaving(message.cameraId)
        const entry = leaving ?? directory.find(message.cameraId)
        if (entry === undefined || (leaving === undefined && !entry.isMoving)) return
        entry.ledger.report(message.counts)
        if (leaving) directory.left(leaving)
        else this.#moves.letGo(entry)
        return
      }
      case 'wantsCard':
        void this.#tellCard(this.#engines.all[index], message)
        return
      case 'leavesCard':
        this.#decoders.left({ engine: index, cameraId: message.cameraId })
        return
      case 'warning':
        metrics.sourceWarnings.inc({ camera: message.cameraId, kind: message.kind })
        return
      case 'triedFails':
        this.#ensemble.interrupt(message.reason)
        return
      case 'instanceExited':
        this.#engineMetrics.instanceExited(index)
        return
      case 'beat': {
        const { cameras, models } = message.beat
        this.#capacity.watch.engineUsed(this.#engineMetrics.beat(index, message.beat))
        this.#modelCounts.report(index, models)
        this.#engines.look()
        this.#decoders.look()
        for (const camera of cameras) {
          const leaving = directory.leaving(camera.cameraId)
          if (leaving) leaving.ledger.report(camera.counts)
          else directory.find(camera.cameraId)?.beat(camera)
        }
        return
      }
      default:
        message satisfies never
    }
  }

  #publish(index: number, result: EngineResult): void {
    const { cameraId, seq, capturedAtMs, run } = result
    if (run !== undefined) this.#deps.loads.ran(index, run)
    this.#capacity.watch.ran(run)
    const leaving = this.#deps.directory.leaving(cameraId)
    // Nobody is told of what a removed camera still shows; its frames are counted all the same.
    if (leaving) return leaving.ledger.report(result.counts)
    const entry = this.#deps.directory.find(cameraId)
    if (!entry) return
    const owner = this.#deps.cluster?.ownerMark(cameraId)
    // Another node has it: what is still on the way here is nobody's.
    if (this.#deps.cluster !== undefined && owner === undefined) return entry.ledger.report(result.counts)
    const captureToPublishMs = Math.round(entry.published(result) * 100) / 100
    this.#ensemble.published(result, captureToPublishMs)
    const trace = this.#deps.traces?.begin(result, captureToPublishMs)
    const json = closedDetectionsJson(result.text, captureToPublishMs, {
      owner,
      traceparent: trace?.traceparent,
    })
    const text: DetectionsText = { cameraId, seq, capturedAtMs, json }
    this.#outlet.publish(detectionsRecordId(this.#deps.epoch, entry.life, text), text, result.picture, trace)
  }
}
