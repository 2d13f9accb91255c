import type { CacheHealth, RecentPage, RecentQuery } from '../../src/cache/result-cache.js'
import { cameraSchema, type CameraConfig, type CameraPatch, type NewCamera } from '../../src/config/camera.js'
import { shownConfig, type CameraView } from '../../src/cameras/camera-view.js'
import type {
  CoverageQuestion,
  CoverageView,
  EngineHealth,
  EnsembleView,
  Gantry,
  HeadroomQuestion,
  HeadroomView,
  SinkPlaces,
  ModelServerHealth,
  ModelsView,
  Readiness,
  TakenSnapshot,
} from '../../src/api/gantry.js'
import type { CameraPreviewRequest } from '../../src/config/camera-preview.js'
import type { CameraPreview } from '../../src/api/preview-schema.js'
import type { EnsembleChangeRequest } from '../../src/config/ensemble-change.js'
import { GantryError, type ErrorCode } from '../../src/errors.js'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import { pictureMessage } from '../../src/messages/picture-message.js'
import { timesOfCameras } from '../../src/coverage/coverage-sums.js'
import type { CoverageSpan } from '../../src/vision/coverage.js'
import { emptyFrameCounts } from '../../src/vision/accounting.js'
import type { CameraStatus } from '../../src/vision/camera-state.js'
import type { ClusterState } from '../../src/cluster/cluster.js'
import type { SinkHealth } from '../../src/delivery/result-sink.js'
import type { GpuFigures } from '../../src/metrics/gpu-metrics.js'
import { textOf } from './detections.js'
import { FakeStreamHub } from './fake-stream-hub.js'

class FakeError extends GantryError {
  readonly hint = 'Look at the test.'
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message)
    this.name = 'FakeError'
  }
}

type FakeCamera = { -readonly [Key in keyof CameraView]: CameraView[Key] } & { latest?: DetectionsMessage }

/** The smallest JPEG start that counts as one. */
const jpegStart = Uint8Array.of(0xff, 0xd8, 0xff, 0xd9)

/** A service in memory: cameras come and go, results are whatever a test emits. */
export class FakeGantry implements Gantry {
  readonly name = 'test'
  readonly version = '0.0.0'
  readonly stream: FakeStreamHub
  readonly #cameras = new Map<string, FakeCamera>()
  readonly #recent: DetectionsMessage[] = []
  /** Queries `recent` was asked, oldest first. */
  readonly queries: RecentQuery[] = []
  /** Cameras that were added and what was changed of them, as it came. */
  readonly added: CameraConfig[] = []
  readonly patched: CameraPatch[] = []
  readonly pushed: Readonly<{ id: string; bytes: number }>[] = []
  sinkPlaces: SinkPlaces = { kafka: null, webhooks: [], mqtt: [] }
  modelServer: ModelServerHealth | null = null
  /** What `models` answers. */
  modelList: ModelsView = {
    server: { state: 'off', reason: '', control: null, isTold: false },
    ensemble: 'ppe',
    items: [],
  }
  reasons: string[] = []
  /** What `changeEnsemble` was asked. */
  changed: EnsembleChangeRequest | undefined
  engines: EngineHealth[] = [fakeEngine()]
  sinks: SinkHealth[] = []
  cache: CacheHealth = { backend: 'memory', state: 'up', reason: '' }
  graphicsCards: GpuFigures[] = []
  /** Its place in a cluster, where it is a node of one. */
  cluster: ClusterState | null = null
  /** Where it is a node: what other nodes ask. */
  onThisNode?: Gantry
  /** What the next call of `metrics` waits for. */
  metricsGate: Promise<void> = Promise.resolve()
  failMetrics: Error | undefined

  constructor(settings: Readonly<{ maxStreamClients?: number }> = {}) {
    this.stream = new FakeStreamHub(settings.maxStreamClients)
  }

  cameras(): readonly CameraView[] {
    return [...this.#cameras.values()]
  }

  camera(id: string): CameraView {
    return this.#find(id)
  }

  headroom({ like }: HeadroomQuestion): HeadroomView {
    if (like !== undefined) this.#find(like)
    return {
      cameras: null,
      limitedBy: null,
      reason: 'not known yet',
      objectiveMs: 300,
      now: null,
      perCamera: null,
      predicted: null,
    }
  }

  /** Spans that `coverage` answers from, of cameras that are there. */
  spans: CoverageSpan[] = []
  readonly coverageAsked: CoverageQuestion[] = []

  async coverage(question: CoverageQuestion): Promise<CoverageView> {
    this.coverageAsked.push(question)
    const { cameraId, fromMs, toMs } = question
    const own = this.spans.filter((span) => span.cameraId === (cameraId ?? span.cameraId))
    return { fromMs, toMs, items: timesOfCameras(own, question) }
  }

  ensemble(): EnsembleView {
    const { changed } = this
    const to = changed && { name: changed.name, since: '2026-11-20T08:15:30.000Z' }
    return { name: 'ppe', configured: 'ppe', state: to ? 'loading' : 'steady', to: to ?? null, last: null }
  }

  async models(): Promise<ModelsView> {
    return this.modelList
  }

  async changeEnsemble(request: EnsembleChangeRequest): Promise<EnsembleView> {
    if (request.name === 'broken') throw new FakeError('GANTRY_MODEL_CONFIG', 'the ensemble is broken')
    if (request.name === 'nowhere') throw new FakeError('GANTRY_MODEL_NOT_FOUND', 'there is no such model')
    if (this.changed) throw new FakeError('GANTRY_ENSEMBLE_BUSY', 'a change is under way')
    this.changed = request
    return this.ensemble()
  }

  async addCamera({ persist, ...config }: NewCamera): Promise<CameraView> {
    this.added.push(config)
    if (this.#cameras.has(config.id))
      throw new FakeError('GANTRY_CAMERA_EXISTS', `camera "${config.id}" is there already`)
    if (config.url.startsWith('gopher:'))
      throw new FakeError('GANTRY_CAMERA_URL', `scheme of "${config.url}" is not allowed`)
    const camera: FakeCamera = {
      id: config.id,
      config: shownConfig(config),
      persist,
      origin: 'api',
      status: fakeStatus(config.enabled ? 'live' : 'disabled'),
      stats: {
        inferredFps: 5,
        receivedFps: 25,
        latencyMs: { p50: 48.2, p99: 71.9 },
        frames: { ...emptyFrameCounts(), received: 100, inferred: 90, superseded: 10 },
        decoderCpuShare: 0.062,
        frozen: false,
        source: { widthPx: 1280, heightPx: 720 },
      },
    }
    this.#cameras.set(config.id, camera)
    return camera
  }

  async patchCamera(id: string, patch: CameraPatch): Promise<CameraView> {
    const camera = this.#find(id)
    this.patched.push(patch)
    const { persist, ...rest } = patch
    const merged = Object.fromEntries(
      Object.entries({ ...camera.config, ...rest }).filter(([, value]) => value !== null),
    )
    camera.config = cameraSchema.parse(merged)
    if (persist !== undefined) camera.persist = persist
    if (patch.enabled !== undefined) camera.status = fakeStatus(patch.enabled ? 'live' : 'disabled')
    return camera
  }

  /** What the next previews say, and what they were asked. */
  preview: CameraPreview = fakePreview()
  readonly previewed: CameraPreviewRequest[] = []

  async previewCamera(asked: CameraPreviewRequest): Promise<CameraPreview> {
    this.previewed.push(asked)
    return this.preview
  }

  async removeCamera(id: string): Promise<void> {
    this.#find(id)
    this.#cameras.delete(id)
  }

  /** What snapshots show, and what is told of it beside its size. */
  snapshotJpeg: Uint8Array = jpegStart
  snapshotFacts: Partial<Pick<TakenSnapshot, 'picture' | 'capturedAtMs'>> = {}
  /** What a snapshot waits for. */
  snapshotGate: Promise<void> = Promise.resolve()

  async snapshot(id: string, { own }: Readonly<{ own: boolean }>): Promise<TakenSnapshot> {
    if (this.#find(id).latest === undefined) throw new FakeError('GANTRY_NOT_FOUND', 'no picture yet')
    const size = own ? { widthPx: 1_280, heightPx: 720 } : { widthPx: 796, heightPx: 448 }
    await this.snapshotGate
    const facts = {
      picture: own ? 'own' : 'analysed',
      capturedAtMs: Date.now(),
      ...this.snapshotFacts,
    } as const
    return { jpeg: this.snapshotJpeg, ...size, ...facts }
  }

  async pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>> {
    if (this.#find(id).config.url !== 'push:')
      throw new FakeError('GANTRY_CAMERA_NOT_PUSH', `camera "${id}" has a URL`)
    this.pushed.push({ id, bytes: image.byteLength })
    return { seq: this.pushed.length }
  }

  async latest(id: string): Promise<DetectionsMessage | undefined> {
    return this.#find(id).latest
  }

  async recent(query: RecentQuery): Promise<RecentPage> {
    this.queries.push(query)
    if (query.cursor === 'bad') throw new FakeError('GANTRY_CURSOR', 'this cursor was not given here')
    const items = this.#recent.filter(
      ({ cameraId }) => query.cameraId === undefined || cameraId === query.cameraId,
    )
    return { items: items.slice(-query.limit).reverse() }
  }

  readiness(): Readiness {
    const byState: Record<string, number> = {}
    for (const { status } of this.#cameras.values()) byState[status.state] = (byState[status.state] ?? 0) + 1
    return {
      ready: this.reasons.length === 0,
      reasons: this.reasons,
      engines: this.engines,
      sinks: this.sinks,
      cache: this.cache,
      store: { state: 'up' as const, reason: 'records are stored', bytes: 0 },
      stream: { state: 'ready', pid: 4243, restarts: 0, reason: '', clients: this.stream.clients },
      modelServer: this.modelServer,
      tlsDoor: null,
      cameras: { total: this.#cameras.size, byState },
      cluster: this.cluster,
    }
  }

  gpus(): readonly GpuFigures[] {
    return this.graphicsCards
  }

  async *metrics(): AsyncGenerator<string, void> {
    await this.metricsGate
    if (this.failMetrics !== undefined) throw this.failMetrics
    yield '# TYPE gantry_up gauge\ngantry_up 1\n'
  }

  setStatus(id: string, status: Partial<CameraStatus>): void {
    const camera = this.#find(id)
    camera.status = { ...camera.status, ...status }
  }

  setNode(id: string, node: string | null): void {
    this.#find(id).node = node
  }

  setStats(id: string, stats: Partial<CameraView['stats']>): void {
    const camera = this.#find(id)
    camera.stats = { ...camera.stats, ...stats }
  }

  /** A result as the engine would give it: kept, and sent to whoever listens. */
  emit(message: DetectionsMessage, jpeg?: Uint8Array, size = { widthPx: 640, heightPx: 360 }): void {
    this.#find(message.cameraId).latest = message
    this.#recent.push(message)
    if (jpeg === undefined) return this.stream.publish(textOf(message))
    const header = {
      type: 'picture',
      cameraId: message.cameraId,
      seq: message.seq,
      capturedAt: message.capturedAt,
      ...size,
      sourceWidthPx: message.frame.widthPx,
      sourceHeightPx: message.frame.heightPx,
      sourceXPx: 0,
      sourceYPx: 0,
      mime: 'image/jpeg',
    } as const
    this.stream.publish(textOf(message), pictureMessage(header, jpeg))
  }

  #find(id: string): FakeCamera {
    const camera = this.#cameras.get(id)
    if (camera === undefined) throw new FakeError('GANTRY_CAMERA_NOT_FOUND', `there is no camera "${id}"`)
    return camera
  }
}

/** A camera that gives a picture. @param jpeg - of it. */
export function fakePreview(jpeg: Uint8Array = jpegStart): CameraPreview {
  return {
    state: 'ok',
    detail: '1280x720, first picture after 412 ms',
    hint: '',
    source: { widthPx: 1280, heightPx: 720 },
    codec: 'h264',
    fps: 25,
    firstPictureMs: 412,
    warnings: [],
    picture: {
      widthPx: 1280,
      heightPx: 720,
      mime: 'image/jpeg',
      base64: Buffer.from(jpeg).toString('base64'),
    },
  }
}

/** A camera as `POST /api/v1/cameras` would have it after defaults. */
export function fakeCamera(id: string, more: Partial<NewCamera> = {}): NewCamera {
  return { ...cameraSchema.parse({ id, url: `rtsp://127.0.0.1:8554/${id}` }), persist: false, ...more }
}

/** A result of a 1280x720 camera. */
export function fakeResult(
  cameraId: string,
  seq: number,
  more: Partial<DetectionsMessage> = {},
): DetectionsMessage {
  return {
    cameraId,
    seq,
    capturedAt: new Date().toISOString(),
    ptsMs: seq * 200,
    frame: { widthPx: 1280, heightPx: 720, quality: 'ok' },
    model: { name: 'ppe', version: '1' },
    detections: [{ label: 'helmet', score: 0.91, boxPx: { x1: 320, y1: 180, x2: 480, y2: 360 } }],
    timingsMs: { queue: 3.1, infer: 21.4, postprocess: 0.8, captureToPublish: 51 },
    ...more,
  }
}

function fakeStatus(state: CameraStatus['state']): CameraStatus {
  return {
    state,
    reason: state === 'disabled' ? 'switched off' : '',
    sinceMs: Date.now() - 60_000,
    attempts: 1,
  }
}

/** A card at work. */
export function fakeGpu(more: Partial<GpuFigures> = {}): GpuFigures {
  return {
    index: 0,
    uuid: 'GPU-5e3a1f0c-7d42-4b7e-9c55-0a1b2c3d4e5f',
    name: 'NVIDIA H100 80GB HBM3',
    utilization: 0.45,
    memoryUsedBytes: 1_207 * 1024 ** 2,
    memoryTotalBytes: 81_559 * 1024 ** 2,
    powerWatts: 318.4,
    powerLimitWatts: 700,
    energyJoules: 12_736.5,
    reason: '',
    ...more,
  }
}

function fakeEngine(): EngineHealth {
  return {
    index: 0,
    state: 'ready',
    device: null,
    pid: 4242,
    restarts: 0,
    reason: '',
    cameras: 0,
    detector: {
      model: { name: 'ppe', version: '1' },
      detector: { name: 'ppe_detect_video', version: '1' },
      labels: ['helmet', 'head', 'person'],
      format: { input: { widthPx: 416, heightPx: 416 }, align: 'center' },
      inputFrom: 'the model file',
      head: 'yolox',
      provider: 'cpu',
      providerNotes: ['cuda: no device'],
      providerFailures: [],
      instances: 2,
      instancesReady: 2,
      maxBatchSize: 1,
    },
  }
}
