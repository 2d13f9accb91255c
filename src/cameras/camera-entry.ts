import type { CameraConfig } from '../config/camera.js'
import { cameraStates, decodeModes, decodePlaces, type CameraStatus } from '../vision/camera-state.js'
import { sourceWarnings } from '../vision/frame-source.js'
import type { SizePx } from '../vision/letterbox.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { CameraCoverage } from '../coverage/camera-coverage.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import type { CameraBeat, EngineResult } from './engine-report.js'
import { FrameLedger } from './frame-ledger.js'
import { shownConfig, type CameraStats, type CameraView } from './camera-view.js'
import { QuantileWindow, RateWindow } from './windows.js'

const rateSeconds = 10
const latencyValues = 300

export type CameraPlace = Readonly<{
  persist: boolean
  origin: CameraView['origin']
  /** Index of the engine that serves the camera. */
  engine: number
  /** Tells cameras apart that have an id one after the other, each with numbers from 1; 0 for those of the start. */
  life: number
  /** It ran in another service until now, or was to run there. */
  isTakenOver?: boolean
}>

/** What the control process knows of one camera. */
export class CameraEntry {
  persist: boolean
  readonly origin: CameraPlace['origin']
  /** Index of the engine that serves it, or is to let it go. */
  engine: number
  /** Its engine lets it go, so that another one takes it on. */
  isMoving = false
  /** Of its last move for the sake of load; `nowMs`. */
  movedMs = -Infinity
  readonly life: number
  readonly ledger: FrameLedger
  /** Its time from here on, watched or blind. */
  readonly coverage: CameraCoverage
  status: CameraStatus
  /** Highest number seen, so that a new engine goes on behind it. */
  lastSeq = 0
  readonly #inferred = new RateWindow(rateSeconds)
  readonly #received = new RateWindow(rateSeconds)
  readonly #latencyMs = new QuantileWindow(latencyValues)
  #receivedTotal = 0
  #source: SizePx | null = null
  #decoderCpu: { seconds: number; atMs: number } | undefined
  #decoderCpuShare = 0
  #attempts = 0
  #frozen = false
  /** Suspect pictures in the counts of the engine, with the last result. */
  #suspect = 0

  constructor(
    public config: CameraConfig,
    { persist, origin, engine, life, isTakenOver = false }: CameraPlace,
    readonly metrics: ServiceMetrics,
  ) {
    this.persist = persist
    this.origin = origin
    this.engine = engine
    this.life = life
    this.ledger = new FrameLedger(config.id, metrics)
    const cause = life === 0 || isTakenOver ? 'service_down' : 'disconnected'
    this.coverage = new CameraCoverage(nowMs(), cause, () => 1_000 / this.config.sampleFps)
    // From 0, so that `increase()` sees the first.
    for (const kind of sourceWarnings) metrics.sourceWarnings.inc({ camera: config.id, kind }, 0)
    this.status = this.waiting('waiting for the engine')
  }

  /** Frames that it asks for in a second: those that come, or else are to come. */
  get framesPerSecond(): number {
    const { enabled, sampleFps } = this.config
    if (!enabled) return 0
    const received = this.#received.perSecond(nowMs())
    return received > 0 ? received : sampleFps
  }

  /** Frames that have come, whatever became of them. */
  get receivedFrames(): number {
    return this.ledger.total.received
  }

  /** Cores that its decoder took in the last second. */
  get decoderCores(): number {
    return this.#decoderCpuShare
  }

  /** p99 of capture to publish over the last results, in milliseconds; undefined while there is none. */
  get p99Ms(): number | undefined {
    return this.#latencyMs.quantiles(0.99)?.[0]
  }

  /** Results that {@link p99Ms} is of. */
  get latencies(): number {
    return this.#latencyMs.size
  }

  /** What was measured so far is of another ensemble. */
  forgetLatency(): void {
    this.#latencyMs.clear()
  }

  waiting(reason: string): CameraStatus {
    return { state: 'connecting', reason, sinceMs: wallMs(), attempts: 0 }
  }

  view(): CameraView {
    return {
      id: this.config.id,
      config: shownConfig(this.config),
      persist: this.persist,
      origin: this.origin,
      status: this.status,
      stats: this.#stats(),
    }
  }

  changed(status: CameraStatus): void {
    this.status = status
    this.coverage.status(status.state, nowMs())
    const camera = this.config.id
    for (const state of cameraStates)
      this.metrics.cameraState.set({ camera, state }, state === status.state ? 1 : 0)
    for (const mode of decodeModes)
      this.metrics.cameraDecode.set({ camera, mode }, mode === status.decode?.mode ? 1 : 0)
    for (const by of decodePlaces)
      this.metrics.cameraDecoder.set({ camera, by }, by === status.decode?.by ? 1 : 0)
    if (status.attempts > this.#attempts)
      this.metrics.decoderStarts.inc({ camera }, status.attempts - this.#attempts)
    this.#attempts = status.attempts
    if (status.state !== 'live') this.#latencyMs.clear()
  }

  /** Shows at once what the engine will say of a camera that was switched off or on. */
  switched(): void {
    const { enabled } = this.config
    if (enabled === (this.status.state !== 'disabled')) return
    if (enabled) this.changed(this.waiting('waiting for the engine'))
    else this.changed({ state: 'disabled', reason: 'switched off', sinceMs: wallMs(), attempts: 0 })
  }

  /** Books one result and tells how long the frame took from the decoder to here. */
  published(result: EngineResult): number {
    const { seq, source, counts } = result
    const now = nowMs()
    const captureToPublishMs = Math.max(0, now - result.arrivedMs)
    this.lastSeq = Math.max(this.lastSeq, seq)
    this.#source = source
    this.#latencyMs.add(captureToPublishMs)
    this.#inferred.add(now)
    this.coverage.lookedAt({
      arrivedMs: result.arrivedMs,
      isSuspect: counts.suspect > this.#suspect,
      received: counts.received,
      gapsMs: result.decodeGapsMs,
    })
    this.#suspect = counts.suspect
    this.#book(counts, now)
    this.#observe(result, captureToPublishMs)
    return captureToPublishMs
  }

  beat(beat: CameraBeat): void {
    const now = nowMs()
    this.#book(beat.counts, now)
    this.coverage.told({ received: beat.counts.received, picture: beat.picture }, now)
    this.#setFrozen(beat.frozen)
    const before = this.#decoderCpu
    const used = before ? beat.decoderCpuSeconds - before.seconds : 0
    if (before && used >= 0 && now > before.atMs) {
      this.#decoderCpuShare = used / ((now - before.atMs) / 1_000)
      this.metrics.decoderCpu.inc({ camera: this.config.id }, used)
    }
    this.#decoderCpu = { seconds: beat.decoderCpuSeconds, atMs: now }
  }

  /** The engine that held the camera is gone. */
  engineGone(reason: string): void {
    this.#letGo(`engine is being restarted: ${reason}`)
  }

  /** Another engine takes the camera on. What the one before had not ended is lost. */
  movesTo(engine: number, reason: string): void {
    this.isMoving = false
    this.engine = engine
    this.#letGo(reason)
  }

  #letGo(reason: string): void {
    this.ledger.close()
    this.#receivedTotal = this.ledger.total.received
    this.#decoderCpu = undefined
    this.#decoderCpuShare = 0
    this.#attempts = 0
    this.#suspect = 0
    this.#setFrozen(false)
    this.coverage.engineGone(nowMs())
    this.changed(this.waiting(reason))
  }

  /** Takes what tells of the present out of the metrics; what has been counted stays for a scrape to come. */
  forget(): void {
    this.ledger.close()
    const camera = this.config.id
    this.metrics.framesInFlight.remove({ camera })
    this.metrics.cameraFrozen.remove({ camera })
    for (const state of cameraStates) this.metrics.cameraState.remove({ camera, state })
    for (const mode of decodeModes) this.metrics.cameraDecode.remove({ camera, mode })
    for (const by of decodePlaces) this.metrics.cameraDecoder.remove({ camera, by })
  }

  #setFrozen(frozen: boolean): void {
    this.#frozen = frozen
    this.metrics.cameraFrozen.set({ camera: this.config.id }, frozen ? 1 : 0)
  }

  #book(counts: EngineResult['counts'], now: number): void {
    this.ledger.report(counts)
    const received = this.ledger.total.received
    this.#received.add(now, received - this.#receivedTotal)
    this.#receivedTotal = received
  }

  #observe({ model, run, decodeGapsMs, labels: found }: EngineResult, captureToPublishMs: number): void {
    const { metrics } = this
    const labels = { camera: this.config.id, model }
    if (run !== undefined) {
      metrics.queue.observe(labels, run.timingsMs.queue / 1_000)
      metrics.infer.observe(labels, run.timingsMs.infer / 1_000)
      metrics.postprocess.observe(labels, run.timingsMs.postprocess / 1_000)
      metrics.batchSize.observe({ model }, run.batchSize)
    }
    metrics.captureToPublish.observe(labels, captureToPublishMs / 1_000)
    for (const gapMs of decodeGapsMs) metrics.decodeGap.observe({ camera: labels.camera }, gapMs / 1_000)
    for (const [label, detections] of found)
      metrics.detections.inc({ camera: labels.camera, label }, detections)
  }

  #stats(): CameraStats {
    const now = nowMs()
    const quantiles = this.#latencyMs.quantiles(0.5, 0.99)
    return {
      inferredFps: this.#inferred.perSecond(now),
      receivedFps: this.#received.perSecond(now),
      latencyMs: quantiles ? { p50: hundredths(quantiles[0]), p99: hundredths(quantiles[1]) } : null,
      frames: this.ledger.total,
      decoderCpuShare: this.#decoderCpuShare,
      frozen: this.#frozen,
      source: this.#source,
    }
  }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
