import type { CameraConfig } from '../../config/camera.js'
import type { Service } from '../../lifecycle/service.js'
import { CameraNotFoundError, CameraNotPushError } from '../../cameras/engine-errors.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import { CameraUnit } from './camera-unit.js'
import type { HeldFrame } from './held-frame.js'
import { encodePicture } from './picture.js'
import { snapshotOf } from './snapshot.js'
import { ProcessBeat } from './process-beat.js'
import { EngineSteps } from './step-models.js'
import { firstFree, phaseOf } from './sampling-places.js'
import {
  mainPictureAtMostMs,
  type CameraAssignment,
  type EngineAnswers,
  type EngineQuestion,
  type EngineSetup,
  type FromEngine,
} from './protocol.js'
import type { Detection } from '../../vision/detection.js'
import type { CameraDetector, DetectorListener, DetectorResult } from '../../detector/camera-detector.js'
import { createCameraDetector } from '../../ensemble/create-camera-detector.js'
import { InternalError, isInternal, toErrorRecord } from '../../errors.js'
import { emptyFrameCounts, type ShedCause } from '../../vision/accounting.js'
import { frameBytes, type Frame } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import type { SourceListener, SourceWarning } from '../../vision/frame-source.js'
import { fromBase64, toBase64 } from '../../lifecycle/base64.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../sources/address-policy.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { createSource, isPushSource } from '../../sources/create-source.js'
import { MainStream } from '../../sources/main-picture.js'

const beatIntervalMs = 1_000
/** Idle frame buffers kept for the next burst. */
const pooledFrames = 64
/** Longest the frames of a removed camera may take to end; a run that hangs ends the whole engine. */
const settledWithinMs = 10_000

/** Main streams opened at once: whoever asks for many snapshots holds up no camera that connects. */
const mostMainStreams = 4

const noTimings = { queue: 0, infer: 0, postprocess: 0 }

type Send = (message: FromEngine) => void

/** Cameras to results: sources feed the detector, and what it finds leaves through `send`. Lives in its own process. */
export class Engine implements Service {
  readonly #units = new Map<string, CameraUnit>()
  readonly #beat = new ProcessBeat()
  readonly #gate: ConnectGate
  readonly #mainGate = new ConnectGate(mostMainStreams)
  readonly #addresses: Readonly<{ all: AddressPolicy; loopbackClosed: AddressPolicy }>
  readonly #steps: EngineSteps
  #detector: CameraDetector | undefined
  #pool = new FramePool(0, 0)
  #pictureCameras: ReadonlySet<string> = new Set()
  #beatTimer: NodeJS.Timeout | undefined
  readonly #questions = new Set<Promise<unknown>>()
  /** No camera is begun any more. */
  #stopping = false
  /** Nothing is analysed any more. */
  #closed = false

  constructor(
    readonly setup: EngineSetup,
    readonly send: Send,
    readonly log: Log,
  ) {
    this.#gate = new ConnectGate(setup.maxConcurrentConnects)
    this.#steps = new EngineSteps({
      repositories: setup.repositories,
      inference: setup.inference,
      allowJsBackends: setup.allowJsBackends,
      onHung: (reason) => this.#hung(new InternalError(reason)),
      log,
    })
    this.#addresses = {
      all: new AddressPolicy(setup.cameraNetworks),
      loopbackClosed: new AddressPolicy({ ...setup.cameraNetworks, loopbackClosed: true }),
    }
  }

  /** Loads the model and its instances. @throws GantryError when the model cannot be used. */
  async start(): Promise<void> {
    const detector = await createCameraDetector({
      repositories: this.setup.repositories,
      ensemble: this.setup.ensemble,
      inference: this.setup.inference,
      listener: this.#detectorListener(),
      log: this.log,
      steps: this.#steps,
    })
    this.#detector = detector
    this.#pool = new FramePool(frameBytes(detector.info.format), pooledFrames)
    this.#beatTimer = setInterval(() => this.#sendBeat(), beatIntervalMs)
    this.send({ type: 'ready', detector: detector.info })
  }

  /** Takes a camera on, or changes one; the others do not notice. */
  async setCamera({ camera, firstSeq, loopbackClosed }: CameraAssignment): Promise<void> {
    const known = this.#units.get(camera.id)
    const unit = known ?? this.#newUnit(camera, firstSeq)
    unit.camera = camera
    this.#units.set(camera.id, unit)
    await unit.source?.stop()
    if (this.#stopping || this.#units.get(camera.id) !== unit || unit.camera !== camera) return
    unit.watchPicture(this.#running().info.format.input)
    unit.main?.close()
    unit.main = this.#mainStream(camera, loopbackClosed.main)
    const source = await createSource(camera, {
      format: this.#running().info.format,
      pool: this.#pool,
      listener: this.#sourceListener(unit),
      nextSeq: () => unit.nextSeq(),
      log: this.log.child({ cameraId: camera.id }),
      mediaRoot: this.setup.mediaRoot,
      addresses: this.#addressesFor(loopbackClosed.analysed),
      connectGate: this.#gate,
      samplingPhase: phaseOf(unit.place),
    })
    // A look at the URL may take its time.
    if (this.#isStopping()) return
    unit.source = source
    source.start()
  }

  #mainStream(camera: CameraConfig, loopbackClosed: boolean): MainStream | undefined {
    if (camera.analyseUrl === undefined || !camera.enabled) return undefined
    const { mediaRoot } = this.setup
    const deps = { mediaRoot, addresses: this.#addressesFor(loopbackClosed), connectGate: this.#mainGate }
    return new MainStream({ camera, deps, withinMs: mainPictureAtMostMs })
  }

  #addressesFor(loopbackClosed: boolean): AddressPolicy {
    return loopbackClosed ? this.#addresses.loopbackClosed : this.#addresses.all
  }

  /**
   * Lets a camera go once each of its frames has ended. Every call is answered with one `removed`, the last message about the camera.
   */
  async removeCamera(cameraId: string): Promise<void> {
    const unit = this.#units.get(cameraId)
    if (unit) await this.#letGo(unit)
    this.send({ type: 'removed', cameraId, counts: unit?.counts ?? emptyFrameCounts() })
  }

  async #letGo(unit: CameraUnit): Promise<void> {
    const { id } = unit.camera
    unit.main?.close()
    await unit.source?.stop()
    this.#detector?.removeCamera(id)
    await atMost(settledWithinMs, unit.settled())
    await unit.outbox
    this.#units.delete(id)
    unit.dropLast()
  }

  showPictures(cameras: readonly string[]): void {
    this.#pictureCameras = new Set(cameras)
  }

  /** @throws GantryError what is wrong with the question; anything else is a fault in here, which is logged. */
  async answer(question: EngineQuestion): Promise<EngineAnswers[EngineQuestion['type']]> {
    const answer = this.#answer(question)
    this.#questions.add(answer)
    try {
      return await answer
    } catch (error) {
      const { type, cameraId } = question
      if (isInternal(error)) this.log.error({ err: error, question: type, cameraId }, 'question failed')
      throw error
    } finally {
      this.#questions.delete(answer)
    }
  }

  async #answer(question: EngineQuestion): Promise<EngineAnswers[EngineQuestion['type']]> {
    switch (question.type) {
      case 'snapshot':
        return toBase64(
          await snapshotOf(this.#unit(question.cameraId), this.#running().info.format, question.overlay),
        )
      case 'pushFrame':
        return this.#push(question.cameraId, fromBase64(question.image))
      default:
        throw new InternalError(
          `engine does not know the question ${JSON.stringify(question satisfies never)}`,
        )
    }
  }

  /** Ends the sources, answers what was asked, lets pushed pictures and runs in flight finish, then ends the instances. */
  async stop(drainMs: number): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    const deadline = new Deadline(drainMs)
    const units = [...this.#units.values()]
    await Promise.all(units.map(async (unit) => unit.source?.stop()))
    await atMost(deadline.leftMs, Promise.allSettled(this.#questions))
    for (const { main } of units) main?.close()
    const pushed = units.filter(({ source }) => source && isPushSource(source))
    await atMost(deadline.leftMs, Promise.all(pushed.map((unit) => unit.settled())))
    this.#closed = true
    await this.#detector?.stop(deadline.leftMs)
    await Promise.all([...this.#units.values()].map((unit) => unit.outbox))
    clearInterval(this.#beatTimer)
    this.#sendBeat()
    this.#beat.stop()
  }

  #newUnit(camera: CameraAssignment['camera'], firstSeq: number): CameraUnit {
    const place = firstFree([...this.#units.values()].map((unit) => unit.place))
    return new CameraUnit(camera, firstSeq, place, (buffer) => this.#pool.give(buffer))
  }

  #isStopping(): boolean {
    return this.#stopping
  }

  #running(): CameraDetector {
    if (!this.#detector) throw new InternalError('engine got a camera before its detector was ready')
    return this.#detector
  }

  #sourceListener(unit: CameraUnit): SourceListener {
    return {
      frame: (frame) => {
        unit.received(frame)
        if (unit.freeze.frame(frame))
          this.#warn(unit, 'frozen_picture', 'the very same picture comes again and again')
        if (this.#closed || !this.#detector) this.#shed(unit, frame, 'stopping')
        else this.#analyse(this.#detector, unit, frame)
      },
      status: (status) => this.send({ type: 'status', cameraId: unit.camera.id, status }),
      warning: (kind, detail) => this.#warn(unit, kind, detail),
    }
  }

  #detectorListener(): DetectorListener {
    return {
      detected: (frame, result) => this.#detected(frame, result),
      superseded: (frame) => {
        const unit = this.#units.get(frame.cameraId)
        unit?.reuse?.dropped(frame)
        unit?.ended('superseded')
        this.#pool.give(frame.rgbHwc)
      },
      shed: (frame, cause, error) => {
        if (error !== undefined) this.log.error({ cameraId: frame.cameraId, err: error }, 'frame shed')
        this.#shed(this.#units.get(frame.cameraId), frame, cause)
      },
      instanceExited: (error) => {
        this.log.error({ err: error }, 'inference instance exited, starting another')
        this.send({ type: 'instanceExited', error: toErrorRecord(error) })
      },
      hung: (error) => this.#hung(error),
    }
  }

  #hung(error: unknown): void {
    this.log.error({ err: error }, 'inference run hangs, asking to be ended')
    this.send({ type: 'failed', error: toErrorRecord(error) })
  }

  #warn(unit: CameraUnit, kind: SourceWarning, detail: string): void {
    this.log.warn({ cameraId: unit.camera.id, kind, detail }, 'camera source warning')
    this.send({ type: 'warning', cameraId: unit.camera.id, kind })
  }

  /** Gives the frame to the detector, unless the scene is still the one of the last result. */
  #analyse(detector: CameraDetector, unit: CameraUnit, frame: Frame): void {
    const reused = unit.reuse?.reusable(frame)
    if (reused === undefined) return detector.offer(frame)
    unit.ended('reused')
    const result = { detections: reused.detections, timingsMs: noTimings, batchSize: 0 }
    this.#leave(unit, frame, result, reused.seq)
  }

  #shed(unit: CameraUnit | undefined, frame: Frame, cause: ShedCause): void {
    unit?.reuse?.dropped(frame)
    unit?.ended(`shed:${cause}`)
    this.#pool.give(frame.rgbHwc)
  }

  #detected(frame: Frame, result: DetectorResult): void {
    const unit = this.#units.get(frame.cameraId)
    if (!unit) return this.#pool.give(frame.rgbHwc)
    unit.ended(frame.quality === 'suspect' ? 'suspect' : 'inferred')
    unit.reuse?.analysed(frame, result.detections)
    this.#leave(unit, frame, result)
  }

  /** Sends a result on its way, with its picture where somebody looks. */
  #leave(unit: CameraUnit, frame: Frame, result: DetectorResult, resultOfSeq?: number): void {
    const held = unit.keep(frame, result.detections)
    const message = this.#result(unit, frame, result, resultOfSeq)
    const watched = this.#pictureCameras.has('*') || this.#pictureCameras.has(frame.cameraId)
    if (!watched && unit.encoding === 0) return this.send({ type: 'result', result: message })
    const picture = watched && unit.encoding === 0 ? this.#picture(unit, held) : undefined
    unit.outbox = unit.outbox.then(async () => {
      const encoded = await picture
      this.send({ type: 'result', result: encoded ? { ...message, picture: encoded } : message })
    })
  }

  /** Encodes beside the loop; a picture that fails is left out, its result is not. */
  async #picture(unit: CameraUnit, held: HeldFrame): Promise<EngineResult['picture']> {
    held.pin()
    unit.encoding += 1
    try {
      const { header, jpeg } = await encodePicture(held.frame, this.#running().info.format)
      return { header, jpeg: toBase64(jpeg) }
    } catch (error) {
      this.log.warn({ cameraId: unit.camera.id, err: error }, 'live picture could not be encoded')
      return undefined
    } finally {
      unit.encoding -= 1
      held.unpin()
    }
  }

  #result(
    unit: CameraUnit,
    frame: Frame,
    { detections, timingsMs, batchSize }: DetectorResult,
    resultOfSeq: number | undefined,
  ): EngineResult {
    return {
      message: {
        cameraId: frame.cameraId,
        seq: frame.seq,
        capturedAt: new Date(frame.capturedAtMs).toISOString(),
        ptsMs: frame.ptsMs,
        frame: { ...frame.source, quality: frame.quality },
        model: { ...this.#running().info.model },
        detections: detections.map(roundedDetection),
        ...(resultOfSeq === undefined ? {} : { resultOfSeq }),
        timingsMs: {
          queue: rounded(timingsMs.queue, 100),
          infer: rounded(timingsMs.infer, 100),
          postprocess: rounded(timingsMs.postprocess, 100),
        },
      },
      arrivedMs: frame.arrivedMs,
      batchSize,
      decodeGapsMs: unit.takeDecodeGapsMs(),
      counts: { ...unit.counts, shed: { ...unit.counts.shed } },
    }
  }

  async #push(cameraId: string, image: Uint8Array): Promise<{ seq: number }> {
    const source = this.#unit(cameraId).source
    if (!source || !isPushSource(source)) throw new CameraNotPushError(cameraId)
    return source.push(image)
  }

  #unit(cameraId: string): CameraUnit {
    const unit = this.#units.get(cameraId)
    if (!unit) throw new CameraNotFoundError(cameraId)
    return unit
  }

  #sendBeat(): void {
    const cameras = [...this.#units].map(([cameraId, unit]) => ({
      cameraId,
      counts: { ...unit.counts, shed: { ...unit.counts.shed } },
      decoderCpuSeconds: unit.source?.decoderCpuSeconds() ?? 0,
      frozen: unit.freeze.frozen,
    }))
    const stepFailures = this.#detector?.takeStepFailures() ?? []
    const models = [...(this.#detector?.statistics() ?? []), ...this.#steps.statistics()]
    this.send({ type: 'beat', beat: { ...this.#beat.read(), stepFailures, cameras, models } })
  }
}

/** Digits nobody can use cost every consumer of a message. */
function rounded(value: number, perUnit: number): number {
  return Math.round(value * perUnit) / perUnit
}

/** Boxes to a hundredth of a pixel, scores to four digits. */
function roundedDetection({ boxPx, score, ...rest }: Detection) {
  const { x1, y1, x2, y2 } = boxPx
  const box = { x1: rounded(x1, 100), y1: rounded(y1, 100), x2: rounded(x2, 100), y2: rounded(y2, 100) }
  return { ...rest, score: rounded(score, 10_000), boxPx: box }
}
