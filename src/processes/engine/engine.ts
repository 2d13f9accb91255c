import type { CameraConfig } from '../../config/camera.js'
import type { InferenceConfig } from '../../config/inference.js'
import type { Service } from '../../lifecycle/service.js'
import { CameraNotFoundError, CameraNotPushError } from '../../cameras/engine-errors.js'
import { CameraUnit } from './camera-unit.js'
import { CardQuestions } from './card-questions.js'
import { ResultOutlet } from './result-outlet.js'
import { snapshotOf } from './snapshot.js'
import { ProcessBeat } from './process-beat.js'
import { EngineSteps } from './step-models.js'
import { firstFree, phaseOf } from './sampling-places.js'
import {
  mainPictureAtMostMs,
  type CameraAssignment,
  type EngineAnswers,
  type EngineOutput,
  type EngineQuestion,
  type EngineSetup,
} from './protocol.js'
import type { CameraDetector, DetectorListener, DetectorResult } from '../../detector/camera-detector.js'
import { type CameraShapes, sizeText } from '../../detector/input-size.js'
import { gpuProvidersOf } from '../../backends/onnxruntime/providers.js'
import { ProviderUses } from '../../backends/onnxruntime/provider-uses.js'
import { createCameraDetector } from '../../ensemble/create-camera-detector.js'
import { type ErrorRecord, InternalError, isInternal, toErrorRecord } from '../../errors.js'
import { DeviceFailedError, deviceFailureIn } from '../../runtime/errors.js'
import { emptyFrameCounts, type FrameOutcome, type ShedCause } from '../../vision/accounting.js'
import { frameBytes, type Frame } from '../../vision/frame.js'
import { scaledSizePx } from '../../vision/letterbox.js'
import { FramePool } from '../../vision/frame-pool.js'
import type { SourceListener, SourceWarning } from '../../vision/frame-source.js'
import { fromBase64, toBase64 } from '../../lifecycle/base64.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../sources/address-policy.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import { createSource, isPushSource } from '../../sources/create-source.js'
import type { CardAnswer } from '../../sources/decode-ways.js'
import { MainStream } from '../../sources/main-picture.js'

const beatIntervalMs = 1_000
/** Idle frame buffers kept for the next burst. */
const pooledFrames = 64
/** Longest the frames of a removed camera may take to end; a run that hangs ends the whole engine. */
const settledWithinMs = 10_000

/** Main streams opened at once: whoever asks for many snapshots holds up no camera that connects. */
const mostMainStreams = 4
/** Bytes that control has not read, above which nothing is analysed. */
const mostUnreadBytes = 16 * 1024 ** 2

const noTimings = { queue: 0, infer: 0, postprocess: 0 }

/** Cameras to results: sources feed the detector, and what it finds leaves through `out`. Lives in its own process. */
export class Engine implements Service {
  readonly #units = new Map<string, CameraUnit>()
  readonly #beat = new ProcessBeat()
  readonly #gate: ConnectGate
  readonly #mainGate = new ConnectGate(mostMainStreams)
  readonly #addresses: Readonly<{ all: AddressPolicy; loopbackClosed: AddressPolicy }>
  readonly #uses: ProviderUses
  readonly #outlet: ResultOutlet
  readonly #steps: EngineSteps
  readonly #cards: CardQuestions
  #detector: CameraDetector | undefined
  #pool = new FramePool(0, 0)
  #beatTimer: NodeJS.Timeout | undefined
  #takeShapes: (shapes: CameraShapes) => void = () => undefined
  readonly #questions = new Set<Promise<unknown>>()
  /** No camera is begun any more. */
  #stopping = false
  /** Nothing is analysed any more. */
  #closed = false
  /** It has asked to be ended. */
  #givenUp = false

  constructor(
    readonly setup: EngineSetup,
    readonly out: EngineOutput,
    readonly log: Log,
  ) {
    this.#gate = new ConnectGate(setup.maxConcurrentConnects)
    this.#uses = new ProviderUses(log)
    this.#cards = new CardQuestions(out)
    this.#outlet = new ResultOutlet(out, log)
    this.#steps = new EngineSteps({
      repositories: setup.repositories,
      inference: setup.inference,
      deviceId: setup.deviceId,
      allowJsBackends: setup.allowJsBackends,
      onDeviceFailed: (reason) => this.#deviceFailed(new DeviceFailedError(reason)),
      onHung: (reason) => this.#hung(new InternalError(reason)),
      uses: this.#uses,
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
      inference: this.#detectorInference(),
      deviceId: this.setup.deviceId,
      cameraShapes: () => this.#askForCameraShapes(),
      listener: this.#detectorListener(),
      log: this.log,
      uses: this.#uses,
      steps: this.#steps,
    })
    this.#detector = detector
    this.#pool = new FramePool(frameBytes(detector.info.format), pooledFrames)
    this.#beatTimer = setInterval(() => this.#sendBeat(), beatIntervalMs)
    this.out.send({ type: 'ready', detector: detector.info, providers: this.#uses.all })
  }

  #detectorInference(): InferenceConfig {
    const { inference, isTrial } = this.setup
    return isTrial === true
      ? { ...inference, providers: [...gpuProvidersOf(inference.providers)] }
      : inference
  }

  #askForCameraShapes(): Promise<CameraShapes> {
    return new Promise((resolve) => {
      this.#takeShapes = resolve
      this.out.send({ type: 'wantsCameraShapes' })
    })
  }

  /** What the engine waits for where the cameras decide the size of its input. */
  takeCameraShapes(shapes: CameraShapes): void {
    this.#takeShapes(shapes)
  }

  /** What one of its decoders waits for. */
  takeCard(requestId: number, answer: CardAnswer): void {
    this.#cards.answered(requestId, answer)
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
      hardware: this.#cards.of(camera.id),
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
    this.out.send({ type: 'removed', cameraId, counts: unit?.counts ?? emptyFrameCounts() })
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
    this.#outlet.watched = new Set(cameras)
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
        if (unit.counts.received === 0) this.#lookAtShape(unit, frame)
        unit.received(frame)
        if (unit.freeze.frame(frame))
          this.#warn(unit, 'frozen_picture', 'the very same picture comes again and again')
        if (this.#closed || !this.#detector) this.#shed(unit, frame, 'stopping')
        else if (this.out.unsentBytes > mostUnreadBytes) this.#superseded(unit, frame)
        else this.#analyse(this.#detector, unit, frame)
      },
      status: (status) => this.out.send({ type: 'status', cameraId: unit.camera.id, status }),
      warning: (kind, detail) => this.#warn(unit, kind, detail),
    }
  }

  /** A camera of another shape than most has fewer pixels in the model's input than it would have in that of the export. */
  #lookAtShape({ camera }: CameraUnit, { regionPx }: Frame): void {
    const { format, exportedInput, detector } = this.#running().info
    if (exportedInput === undefined) return
    const here = scaledSizePx(regionPx, format.input)
    const there = scaledSizePx(regionPx, exportedInput)
    if (here.widthPx >= there.widthPx - 1 && here.heightPx >= there.heightPx - 1) return
    this.log.warn(
      { cameraId: camera.id, model: detector.name },
      `the camera has another shape than the input: its picture is analysed at ${sizeText(here)}, not at ${sizeText(there)}; set gantry.input_size of the model to ${sizeText(exportedInput)} if that loses boxes`,
    )
  }

  #detectorListener(): DetectorListener {
    return {
      detected: (frame, result) => this.#detected(frame, result),
      superseded: (frame) => this.#superseded(this.#units.get(frame.cameraId), frame),
      shed: (frame, cause, error) => {
        if (error !== undefined) this.log.error({ cameraId: frame.cameraId, err: error }, 'frame shed')
        this.#shed(this.#units.get(frame.cameraId), frame, cause)
        this.#deviceFailed(error)
      },
      instanceExited: (error) => {
        this.log.error({ err: error }, 'inference instance exited, starting another')
        this.out.send({ type: 'instanceExited', error: toErrorRecord(error) })
        this.#deviceFailed(error)
      },
      hung: (error) => this.#hung(error),
    }
  }

  #hung(error: unknown): void {
    this.log.error({ err: error }, 'inference run hangs, asking to be ended')
    this.#giveUp(toErrorRecord(error))
  }

  /** Does nothing for any other error. The context on a GPU is the process's: only another process has one that works. */
  #deviceFailed(error: unknown): void {
    const failure = deviceFailureIn(error)
    if (failure === undefined || this.#givenUp) return
    this.log.error(failure, 'GPU fails for good in this process, asking to be ended')
    this.#giveUp(failure)
  }

  #giveUp(error: ErrorRecord): void {
    this.#givenUp = true
    this.out.send({ type: 'failed', error })
  }

  #warn(unit: CameraUnit, kind: SourceWarning, detail: string): void {
    this.log.warn({ cameraId: unit.camera.id, kind, detail }, 'camera source warning')
    this.out.send({ type: 'warning', cameraId: unit.camera.id, kind })
  }

  /** Gives the frame to the detector, unless the scene is still the one of the last result. */
  #analyse(detector: CameraDetector, unit: CameraUnit, frame: Frame): void {
    const reused = unit.reuse?.reusable(frame)
    if (reused === undefined) return detector.offer(frame)
    unit.ended('reused')
    const result = { detections: reused.detections, timingsMs: noTimings, batchSize: 0 }
    this.#outlet.leave(unit, frame, result, this.#running().info, reused.seq)
  }

  #shed(unit: CameraUnit | undefined, frame: Frame, cause: ShedCause): void {
    this.#dropped(unit, frame, `shed:${cause}`)
  }

  #superseded(unit: CameraUnit | undefined, frame: Frame): void {
    this.#dropped(unit, frame, 'superseded')
  }

  #dropped(unit: CameraUnit | undefined, frame: Frame, outcome: FrameOutcome): void {
    unit?.reuse?.dropped(frame)
    unit?.ended(outcome)
    this.#pool.give(frame.rgbHwc)
  }

  #detected(frame: Frame, result: DetectorResult): void {
    const unit = this.#units.get(frame.cameraId)
    if (!unit) return this.#pool.give(frame.rgbHwc)
    unit.ended(frame.quality === 'suspect' ? 'suspect' : 'inferred')
    unit.reuse?.analysed(frame, result.detections)
    this.#outlet.leave(unit, frame, result, this.#running().info)
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
    const instancesReady = this.#detector?.instancesReady ?? 0
    const providers = this.#uses.all
    const sizes = this.#detector?.info.sizes
    const beat = { ...this.#beat.read(), instancesReady, stepFailures, cameras, models, providers }
    this.out.send({ type: 'beat', beat: { ...beat, ...(sizes && { sizes }) } })
  }
}
