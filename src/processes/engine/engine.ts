import type { InferenceConfig } from '../../config/inference.js'
import type { Service } from '../../lifecycle/service.js'
import { CameraNotFoundError, CameraNotPushError } from '../../cameras/engine-errors.js'
import { CameraSources } from './camera-sources.js'
import { CameraUnit } from './camera-unit.js'
import { CardQuestions } from './card-questions.js'
import type { EngineModel } from './engine-model.js'
import { isModelQuestion, ModelSwitch } from './model-switch.js'
import { ResultOutlet } from './result-outlet.js'
import { OwnSnapshot } from './own-snapshot.js'
import { snapshotOf } from './snapshot.js'
import { StillAnalysis } from './still-analysis.js'
import { ProcessBeat } from './process-beat.js'
import { firstFree } from './sampling-places.js'
import type {
  CameraAssignment,
  EngineAnswers,
  EngineOutput,
  EngineQuestion,
  EngineSetup,
  ModelQuestion,
} from './protocol.js'
import type { DetectorResult } from '../../detector/camera-detector.js'
import { type CameraShapes, sizeText } from '../../detector/input-size.js'
import { gpuProvidersOf } from '../../backends/onnxruntime/providers.js'
import { type ErrorRecord, InternalError, isInternal, toErrorRecord } from '../../errors.js'
import { DeviceFailedError, deviceFailureIn } from '../../runtime/errors.js'
import { emptyFrameCounts, type FrameOutcome, type ShedCause } from '../../vision/accounting.js'
import type { Frame } from '../../vision/frame.js'
import { scaledSizePx } from '../../vision/letterbox.js'
import type { SourceWarning } from '../../vision/frame-source.js'
import { fromBase64, toBase64 } from '../../lifecycle/base64.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { Turns } from '../../lifecycle/turns.js'
import { isPushSource } from '../../sources/create-source.js'
import type { CardAnswer } from '../../sources/decode-ways.js'

const beatIntervalMs = 1_000
/** Longest the frames of a removed camera may take to end; a run that hangs ends the whole engine. */
const settledWithinMs = 10_000
/** Bytes that control has not read, above which nothing is analysed. */
const mostUnreadBytes = 16 * 1024 ** 2
/** Cameras that go over to another model at once. */
const goOverAtOnce = 4

const noTimings = { queue: 0, infer: 0, postprocess: 0 }

/** Cameras to results: sources feed the detector, and what it finds leaves through `out`. Lives in its own process. */
export class Engine implements Service {
  readonly #units = new Map<string, CameraUnit>()
  /** Changes of one camera come one after another. */
  readonly #turns = new Turns()
  readonly #beat = new ProcessBeat()
  readonly #sources: CameraSources
  readonly #outlet: ResultOutlet
  readonly #models: ModelSwitch
  readonly #cards: CardQuestions
  readonly #stills = new StillAnalysis()
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
    this.#cards = new CardQuestions(out)
    this.#outlet = new ResultOutlet(out, log)
    this.#sources = new CameraSources({
      setup,
      cards: this.#cards,
      frame: (unit, model, frame) => this.#frame(unit, model, frame),
      status: ({ camera }, status) => out.send({ type: 'status', cameraId: camera.id, status }),
      warning: (unit, kind, detail) => this.#warn(unit, kind, detail),
      log,
    })
    this.#models = new ModelSwitch({
      options: {
        inference: this.#detectorInference(),
        deviceId: setup.deviceId,
        allowJsBackends: setup.allowJsBackends,
        cameraShapes: () => this.#askForCameraShapes(),
        onDeviceFailed: (reason) => this.#deviceFailed(new DeviceFailedError(reason)),
        onHung: (reason) => this.#hung(new InternalError(reason)),
        log,
      },
      detected: (model, frame, result) => this.#detected(model, frame, result),
      superseded: (frame) => this.#ended(frame, 'superseded'),
      shed: (frame, cause, error) => this.#shed(frame, cause, error),
      instanceExited: (error) => this.#instanceExited(error),
      hung: (error) => this.#hung(error),
      goOver: (model) => this.#goOver(model),
      triedFails: (reason) => out.send({ type: 'triedFails', reason }),
    })
  }

  /** Loads the model and its instances. @throws GantryError when the model cannot be used. */
  async start(): Promise<void> {
    await this.#models.start(this.setup)
    this.#beatTimer = setInterval(() => this.#sendBeat(), beatIntervalMs)
    const { inUse, providers } = this.#models
    this.out.send({ type: 'ready', detector: inUse.info, providers })
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

  /** The decoder of a camera may ask again. */
  cardHasRoom(cameraId: string): void {
    this.#units.get(cameraId)?.source?.cardHasRoom?.()
  }

  /** Takes a camera on, or changes one; the others do not notice. */
  setCamera(assignment: CameraAssignment): Promise<void> {
    return this.#turns.take(assignment.camera.id, () => this.#setCamera(assignment))
  }

  async #setCamera({ camera, firstSeq, loopbackClosed }: CameraAssignment): Promise<void> {
    const known = this.#units.get(camera.id)
    const unit = known ?? this.#newUnit(camera, firstSeq)
    unit.camera = camera
    unit.loopbackClosed = loopbackClosed
    this.#units.set(camera.id, unit)
    await unit.source?.stop()
    if (this.#stopping) return
    const model = this.#models.inUse
    unit.watchPicture(model.info.format.input)
    unit.own = new OwnSnapshot()
    unit.main?.close()
    unit.main = this.#sources.mainStream(unit)
    const feed = await this.#sources.open(unit, model)
    // A look at the URL may take its time.
    if (this.#isStopping()) return
    this.#sources.begin(unit, feed)
  }

  /** While the model is the one in use; a camera that is taken on meanwhile is given to it anyway. */
  async #goOver(model: EngineModel): Promise<void> {
    const ids = [...this.#units.keys()].values()
    const one = async () => {
      for (const id of ids)
        await this.#turns
          .take(id, async () => {
            const unit = this.#units.get(id)
            if (unit && this.#models.inUse === model && !this.#stopping)
              await this.#sources.goOver(unit, model)
          })
          .catch((error: unknown) => this.log.error({ cameraId: id, err: error }, 'camera change failed'))
    }
    await Promise.all(Array.from({ length: goOverAtOnce }, one))
  }

  /**
   * Lets a camera go once each of its frames has ended. Every call is answered with one `removed`, the last message about the camera.
   */
  removeCamera(cameraId: string): Promise<void> {
    return this.#turns.take(cameraId, async () => {
      const unit = this.#units.get(cameraId)
      if (unit) await this.#letGo(unit)
      this.out.send({ type: 'removed', cameraId, counts: unit?.counts ?? emptyFrameCounts() })
    })
  }

  async #letGo(unit: CameraUnit): Promise<void> {
    const { id } = unit.camera
    unit.main?.close()
    await unit.source?.stop()
    this.#models.removeCamera(id)
    await atMost(settledWithinMs, unit.settled())
    await unit.outbox
    this.#units.delete(id)
    unit.dropLast()
    unit.close()
  }

  showPictures(cameras: readonly string[]): void {
    this.#outlet.watched = new Set(cameras)
  }

  /** @throws GantryError what is wrong with the question; anything else is a fault in here, which is logged. */
  async answer(question: EngineQuestion): Promise<EngineAnswers[EngineQuestion['type']]> {
    try {
      return await (isModelQuestion(question) ? this.#models.answer(question) : this.#answerSoon(question))
    } catch (error) {
      const { type: asked, ...about } = { cameraId: undefined, ...question }
      if (isInternal(error))
        this.log.error({ err: error, question: asked, cameraId: about.cameraId }, 'question failed')
      throw error
    }
  }

  /** Whoever stops the engine waits for the answer. */
  async #answerSoon(question: CameraQuestion): Promise<EngineAnswers[CameraQuestion['type']]> {
    const answer = this.#answer(question)
    this.#questions.add(answer)
    try {
      return await answer
    } finally {
      this.#questions.delete(answer)
    }
  }

  async #answer(question: CameraQuestion): Promise<EngineAnswers[CameraQuestion['type']]> {
    switch (question.type) {
      case 'snapshot': {
        const unit = this.#unit(question.cameraId)
        const model = this.#models.inUse
        const { jpeg, ...facts } = await snapshotOf(unit, {
          overlay: question.overlay,
          own: question.own,
          format: model.info.format,
          detect: (picture) => this.#stills.detect(model, unit.camera, picture),
        })
        return { ...facts, jpeg: toBase64(jpeg) }
      }
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
    this.#models.refuse()
    await Promise.all([this.#sources.close(), ...units.map(async (unit) => unit.source?.stop())])
    await atMost(deadline.leftMs, Promise.allSettled(this.#questions))
    for (const unit of units) unit.close()
    const pushed = units.filter(({ source }) => source && isPushSource(source))
    await atMost(deadline.leftMs, Promise.all(pushed.map((unit) => unit.settled())))
    this.#closed = true
    await this.#models.stop(deadline.leftMs)
    await Promise.all([...this.#units.values()].map((unit) => unit.outbox))
    clearInterval(this.#beatTimer)
    this.#sendBeat()
    this.#beat.stop()
  }

  #newUnit(camera: CameraAssignment['camera'], firstSeq: number): CameraUnit {
    const place = firstFree([...this.#units.values()].map((unit) => unit.place))
    return new CameraUnit(camera, firstSeq, place, (buffer) => this.#models.give(buffer))
  }

  #isStopping(): boolean {
    return this.#stopping
  }

  #frame(unit: CameraUnit, model: EngineModel, frame: Frame): void {
    if (unit.counts.received === 0) this.#lookAtShape(unit, model, frame)
    unit.received(frame)
    if (unit.checks.frame(frame, model.info.format))
      this.#warn(unit, 'frozen_picture', 'the very same picture comes again and again')
    if (this.#closed) this.#dropped(unit, frame, 'shed:stopping')
    else if (this.out.unsentBytes > mostUnreadBytes) this.#dropped(unit, frame, 'superseded')
    else this.#analyse(unit, model, frame)
  }

  /** A camera of another shape than most has fewer pixels in the model's input than it would have in that of the export. */
  #lookAtShape({ camera }: CameraUnit, { info }: EngineModel, { regionPx }: Frame): void {
    const { format, exportedInput, detector } = info
    if (exportedInput === undefined) return
    const here = scaledSizePx(regionPx, format.input)
    const there = scaledSizePx(regionPx, exportedInput)
    if (here.widthPx >= there.widthPx - 1 && here.heightPx >= there.heightPx - 1) return
    this.log.warn(
      { cameraId: camera.id, model: detector.name },
      `the camera has another shape than the input: its picture is analysed at ${sizeText(here)}, not at ${sizeText(there)}; set gantry.input_size of the model to ${sizeText(exportedInput)} if that loses boxes`,
    )
  }

  #instanceExited(error: unknown): void {
    this.log.error({ err: error }, 'inference instance exited, starting another')
    this.out.send({ type: 'instanceExited', error: toErrorRecord(error) })
    this.#deviceFailed(error)
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
    unit.warnings.line(`${kind} ${detail}`, (repeats) =>
      this.log.warn({ cameraId: unit.camera.id, kind, detail, ...repeats }, 'camera source warning'),
    )
    this.out.send({ type: 'warning', cameraId: unit.camera.id, kind })
  }

  /** Gives the frame to its model, unless the scene is still the one of the last result. */
  #analyse(unit: CameraUnit, model: EngineModel, frame: Frame): void {
    const reused = unit.feed?.model === model ? unit.reuse?.reusable(frame) : undefined
    if (reused === undefined) {
      unit.order.enter(frame.seq, model)
      return this.#models.offer(model, frame, unit.camera)
    }
    unit.ended('reused')
    const result = { detections: reused.detections, timingsMs: noTimings, batchSize: 0 }
    this.#outlet.leave(unit, frame, result, model.info, reused.seq)
  }

  #shed(frame: Frame, cause: ShedCause, error?: unknown): void {
    if (error !== undefined) this.log.error({ cameraId: frame.cameraId, err: error }, 'frame shed')
    this.#ended(frame, `shed:${cause}`)
    this.#deviceFailed(error)
  }

  /** A frame that a model had has ended without a result. */
  #ended(frame: Frame, outcome: FrameOutcome): void {
    const unit = this.#units.get(frame.cameraId)
    if (this.#stills.ended(frame) || !unit) return this.#models.give(frame.rgbHwc)
    unit.order.end(frame.seq, () => this.#dropped(unit, frame, outcome))
  }

  #dropped(unit: CameraUnit, frame: Frame, outcome: FrameOutcome): void {
    unit.reuse?.dropped(frame)
    unit.ended(outcome)
    this.#models.give(frame.rgbHwc)
  }

  #detected(model: EngineModel, frame: Frame, result: DetectorResult): void {
    const unit = this.#units.get(frame.cameraId)
    if (this.#stills.ended(frame, result.detections) || !unit) return this.#models.give(frame.rgbHwc)
    unit.order.end(frame.seq, () => {
      unit.ended(frame.quality === 'suspect' ? 'suspect' : 'inferred')
      unit.reuse?.analysed(frame, result.detections)
      this.#outlet.leave(unit, frame, result, model.info)
    })
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
      frozen: unit.checks.freeze.frozen,
      picture: unit.checks.verdict,
    }))
    const { providers } = this.#models
    const stepFailures = this.#models.takeStepFailures()
    const models = this.#models.statistics()
    const detector = this.#models.isOpen ? this.#models.inUse.detector : undefined
    const instancesReady = detector?.instancesReady ?? 0
    const { sizes, scoreFault } = detector?.info ?? {}
    const beat = { ...this.#beat.read(), instancesReady, stepFailures, cameras, models, providers }
    this.out.send({
      type: 'beat',
      beat: { ...beat, ...(sizes && { sizes }), ...(scoreFault && { scoreFault }) },
    })
  }
}

type CameraQuestion = Exclude<EngineQuestion, ModelQuestion>
