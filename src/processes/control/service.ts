import type { RecentPage, RecentQuery, ResultCache } from '../../cache/result-cache.js'
import { analysedUrl, type CameraPatch, type NewCamera } from '../../config/camera.js'
import { mainPictureAtMostMs, type EngineSetup, type FromEngine } from '../engine/protocol.js'
import { detectionsRecordId } from '../../messages/cloud-event.js'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import { fromBase64, toBase64 } from '../../lifecycle/base64.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { Turns } from '../../lifecycle/turns.js'
import { metricsText } from '../../metrics/metrics-text.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { ResultSink } from '../../delivery/result-sink.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CameraEntry } from '../../cameras/camera-entry.js'
import { EngineProcess } from '../engine/engine-process.js'
import type { OwnMessage } from '../supervised-process.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'
import type { StreamProcess } from '../stream/stream-process.js'
import { ModelCounts } from './model-counts.js'
import type { CameraView } from '../../cameras/camera-view.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type { EngineHealth, Gantry, Readiness } from '../../api/gantry.js'

/** Numbers left free after an engine's death: it may have given some to frames it took along. */
const seqMargin = 1_000
/** Longest that the start waits for the process of the viewers. */
const streamAtMostMs = 5_000
/** Longest for a picture of a camera's main stream, with time to tell why there is none. */
const snapshotAtMostMs = mainPictureAtMostMs + 2_000
/** Longest for the frames that are in the engines: cameras end at once, so it is a run or two. */
const enginesAtMostMs = 10_000

export type ServiceDeps = Readonly<{
  name: string
  version: string
  /** Tells the records of this run from those of another with the same numbers. */
  epoch: string
  engines: number
  engineSetup: Omit<EngineSetup, 'index'>
  directory: CameraDirectory
  cache: ResultCache
  sinks: readonly ResultSink[]
  stream: StreamProcess
  metrics: ServiceMetrics
  /** `undefined` where API clients get no models. */
  modelServer: ModelServerProcess | undefined
  log: Log
}>

/** The running service: cameras and engines on one side, sinks, cache and clients on the other. */
export class GantryService implements Gantry {
  readonly name: string
  readonly version: string
  readonly stream: StreamProcess
  readonly #engines: readonly EngineProcess[]
  readonly #deps: ServiceDeps
  /** A camera is saved before its engine is told; two changes of one must not reach the engine the other way round. */
  readonly #turns = new Turns()
  readonly #modelCounts = new ModelCounts()
  #draining = false

  constructor(deps: ServiceDeps) {
    this.#deps = deps
    this.name = deps.name
    this.version = deps.version
    this.stream = deps.stream
    this.#engines = Array.from({ length: deps.engines }, (_, index) => this.#createEngine(index))
    this.stream.onPictureCameras = (cameras) => {
      for (const engine of this.#engines) engine.tell({ type: 'pictures', cameras: [...cameras] })
    }
  }

  /** Starts the engines and gives them their cameras. @throws GantryError when the model cannot be used. */
  async start(): Promise<void> {
    this.#deps.cache.start()
    for (const sink of this.#deps.sinks) sink.start()
    const stream = this.stream.start()
    await Promise.all(this.#engines.map((engine) => engine.start()))
    // It is there long before a model is loaded; one that cannot start is no reason to do without cameras.
    await atMost(streamAtMostMs, stream)
    // Cameras first: a service is ready without its model server.
    if (this.#deps.directory.size > 0) this.#deps.modelServer?.giveWay()
    void this.#deps.modelServer?.start()
  }

  /** From now on not ready; idempotent. */
  refuse(): void {
    this.#draining = true
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
    const withinMs = Math.min(deadline.leftMs, enginesAtMostMs)
    await Promise.all(this.#engines.map((engine) => engine.stop(withinMs)))
    await Promise.all([...this.#deps.sinks.map((sink) => sink.stop(deadline.leftMs)), this.stream.stop()])
  }

  /** Ends what {@link drain} left, which others may have needed until now. Idempotent, never rejects. */
  async stop(): Promise<void> {
    await Promise.all([this.#deps.modelServer?.stop(), this.#deps.cache.stop()])
  }

  cameras(): readonly CameraView[] {
    return this.#deps.directory.views()
  }

  camera(id: string): CameraView {
    return this.#deps.directory.get(id).view()
  }

  addCamera(camera: NewCamera): Promise<CameraView> {
    return this.#turns.take(camera.id, async () => {
      const entry = await this.#deps.directory.add(camera)
      this.#deps.modelServer?.giveWay()
      this.#assign(entry)
      return entry.view()
    })
  }

  patchCamera(id: string, patch: CameraPatch): Promise<CameraView> {
    return this.#turns.take(id, async () => {
      const entry = await this.#deps.directory.patch(id, patch)
      entry.switched()
      this.#assign(entry)
      return entry.view()
    })
  }

  removeCamera(id: string): Promise<void> {
    return this.#turns.take(id, () => this.#remove(id))
  }

  async #remove(id: string): Promise<void> {
    const entry = await this.#deps.directory.remove(id)
    if (!this.#engineOf(entry).tell({ type: 'removeCamera', cameraId: id })) this.#deps.directory.left(entry)
    await this.#deps.cache.forget(id).catch((error: unknown) => {
      this.#deps.log.warn(
        { cameraId: id, err: error },
        'cached results of a removed camera stay until they expire',
      )
    })
  }

  async snapshot(id: string, overlay: boolean): Promise<Uint8Array> {
    const entry = this.#deps.directory.get(id)
    const question = { type: 'snapshot', cameraId: id, overlay } as const
    return fromBase64(await this.#engineOf(entry).ask(question, snapshotAtMostMs))
  }

  async pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>> {
    const entry = this.#deps.directory.get(id)
    return this.#engineOf(entry).ask({ type: 'pushFrame', cameraId: id, image: toBase64(image) })
  }

  async latest(id: string): Promise<DetectionsMessage | undefined> {
    this.#deps.directory.get(id)
    return this.#deps.cache.latest(id)
  }

  async recent(query: RecentQuery): Promise<RecentPage> {
    return this.#deps.cache.recent(query)
  }

  readiness(): Readiness {
    const engines = this.#engineHealth()
    const waiting = engines.filter((engine) => engine.state !== 'ready')
    const inTheWay = [
      ...(this.#draining ? ['the service is shutting down'] : []),
      ...waiting.map(
        (engine) => `engine ${engine.index} is ${engine.state}${engine.reason && `: ${engine.reason}`}`,
      ),
      ...(this.#deps.modelServer?.reasons ?? []),
    ]
    return {
      ready: inTheWay.length === 0,
      reasons: [...inTheWay, ...this.#providerFailures(engines)],
      engines,
      sinks: this.#deps.sinks.map((sink) => sink.health),
      cache: this.#deps.cache.health,
      stream: this.stream.health,
      modelServer: this.#deps.modelServer?.health ?? null,
      cameras: { total: this.#deps.directory.size, byState: this.#camerasByState() },
    }
  }

  async *metrics(): AsyncGenerator<string, void> {
    const { metrics, sinks, modelServer } = this.#deps
    for (const { health } of sinks) {
      metrics.sinkUp.set({ sink: health.name }, health.state === 'up' ? 1 : 0)
      metrics.sinkQueued.set({ sink: health.name }, health.queued)
    }
    const models = this.#modelCounts.text(async (question) => modelServer?.modelMetrics(question))
    await this.stream.measure()
    yield* metricsText(metrics.registry)
    const text = await models
    if (text) yield text
  }

  #createEngine(index: number): EngineProcess {
    // Counters that begin at 1 would hide the first restart or exit from `increase()`.
    this.#deps.metrics.engineRestarts.inc({ engine: String(index) }, 0)
    this.#deps.metrics.engineInstanceExits.inc({ engine: String(index) }, 0)
    const engine: EngineProcess = new EngineProcess(
      { ...this.#deps.engineSetup, index },
      {
        ready: () => this.#engineReady(index),
        gone: (reason) => this.#engineGone(index, reason),
        message: (message) => this.#receive(index, message),
      },
      this.#deps.log,
    )
    return engine
  }

  #engineOf(entry: CameraEntry): EngineProcess {
    const engine = this.#engines[entry.engine]
    if (!engine) throw new RangeError(`camera "${entry.config.id}" is assigned to engine ${entry.engine}`)
    return engine
  }

  #engineReady(index: number): void {
    this.#deps.metrics.engineUp.set({ engine: String(index) }, 1)
    this.#engines[index]?.tell({ type: 'pictures', cameras: [...this.stream.pictureCameras] })
    for (const entry of this.#deps.directory) if (entry.engine === index) this.#assign(entry)
  }

  #engineGone(index: number, reason: string): void {
    const engine = String(index)
    this.#deps.metrics.engineUp.set({ engine }, 0)
    this.#deps.metrics.engineRestarts.inc({ engine })
    this.#engineCpuSeconds.delete(index)
    this.#modelCounts.engineGone(index)
    for (const entry of this.#deps.directory) if (entry.engine === index) entry.engineGone(reason)
    this.#deps.directory.engineGone(index)
  }

  #assign(entry: CameraEntry): void {
    const firstSeq = entry.lastSeq === 0 ? 1 : entry.lastSeq + seqMargin
    const { directory } = this.#deps
    const camera = entry.config
    const loopbackClosed = {
      analysed: directory.loopbackClosedFor(camera.id, analysedUrl(camera)),
      main: directory.loopbackClosedFor(camera.id, camera.url),
    }
    this.#engineOf(entry).tell({ type: 'setCamera', camera, firstSeq, loopbackClosed })
  }

  readonly #engineCpuSeconds = new Map<number, number>()

  #receive(index: number, message: OwnMessage<FromEngine>): void {
    const { directory, metrics } = this.#deps
    const engine = String(index)
    switch (message.type) {
      case 'result':
        this.#publish(message.result)
        return
      case 'status':
        if (!directory.leaving(message.cameraId)) directory.find(message.cameraId)?.changed(message.status)
        return
      case 'removed': {
        const entry = directory.leaving(message.cameraId)
        entry?.ledger.report(message.counts)
        if (entry) directory.left(entry)
        return
      }
      case 'warning':
        metrics.sourceWarnings.inc({ camera: message.cameraId, kind: message.kind })
        return
      case 'instanceExited':
        metrics.engineInstanceExits.inc({ engine })
        return
      case 'beat': {
        const { rssBytes, loopP99Ms, cpuSeconds, stepFailures, cameras, models } = message.beat
        for (const { step, failed, late } of stepFailures) {
          metrics.stepFailures.inc({ step, reason: 'failed' }, failed)
          metrics.stepFailures.inc({ step, reason: 'late' }, late)
        }
        this.#modelCounts.report(index, models)
        metrics.engineRss.set({ engine }, rssBytes)
        metrics.engineLoopP99.set({ engine }, loopP99Ms / 1_000)
        metrics.engineCpu.inc({ engine }, Math.max(0, cpuSeconds - (this.#engineCpuSeconds.get(index) ?? 0)))
        this.#engineCpuSeconds.set(index, cpuSeconds)
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

  #publish(result: EngineResult): void {
    const leaving = this.#deps.directory.leaving(result.message.cameraId)
    // Nobody is told of what a removed camera still shows; its frames are counted all the same.
    if (leaving) return leaving.ledger.report(result.counts)
    const entry = this.#deps.directory.find(result.message.cameraId)
    if (!entry) return
    const captureToPublish = entry.published(result)
    const timingsMs = {
      ...result.message.timingsMs,
      captureToPublish: Math.round(captureToPublish * 100) / 100,
    }
    const message: DetectionsMessage = { ...result.message, timingsMs }
    this.stream.publish(message, result.picture)
    this.#deps.cache.put(message)
    const recordId = detectionsRecordId(this.#deps.epoch, entry.life, message)
    for (const sink of this.#deps.sinks) sink.accept(recordId, message)
  }

  #engineHealth(): EngineHealth[] {
    const cameras = [...this.#deps.directory]
    return this.#engines.map(({ health }) => ({
      ...health,
      cameras: cameras.filter((entry) => entry.engine === health.index).length,
    }))
  }

  /** A GPU that should run the models and does not. Work is done, so that it makes nothing unready. */
  #providerFailures(engines: readonly EngineHealth[]): string[] {
    return [
      ...engines.flatMap(({ index, detector }) =>
        (detector?.providerFailures ?? []).map(
          (failure) => `engine ${index} runs on ${detector?.provider}: ${failure}`,
        ),
      ),
      ...(this.#deps.modelServer?.health.providerFailures ?? []).map(
        (failure) => `models of clients run elsewhere: ${failure}`,
      ),
    ]
  }

  #camerasByState(): Record<string, number> {
    const byState: Record<string, number> = {}
    for (const { status } of this.#deps.directory) byState[status.state] = (byState[status.state] ?? 0) + 1
    return byState
  }
}
