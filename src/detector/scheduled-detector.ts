import type { Detection } from '../vision/detection.js'
import { type Frame, frameBytes } from '../vision/frame.js'
import { TensorShapeError } from '../runtime/errors.js'
import { type BatchRunner, BatchScheduler } from '../runtime/batch-scheduler.js'
import type { QueueItem } from '../runtime/policies/latest-slots.js'
import { RunChoice, type SizesInUse } from '../runtime/batch-sizes.js'
import { type BatchLimits, NewestPerStream } from '../runtime/policies/newest-per-stream.js'
import { StreamOrder } from '../runtime/stream-order.js'
import { type CountedStatistics, counted } from '../runtime/counted-statistics.js'
import { timers } from '../runtime/scheduler-clock.js'
import type { ExecutionTimes } from '../runtime/statistics.js'
import type { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import { nowMs } from '../lifecycle/clock.js'
import type { CameraDetector, DetectorInfo, DetectorListener } from './camera-detector.js'
import {
  type DetectorAnswer,
  type DetectorJob,
  type FrameDetections,
  rowLength,
} from './detector-protocol.js'
import type { LaterSteps, StepFailures } from './later-steps.js'
import type { ClassDoubts } from './class-doubts.js'
import { labelOf } from './heads/label-list.js'
import { isScore, strangeIn } from './strange-scores.js'

/** Where frames become boxes: the instances of a detector, or the steps of an ensemble. */
export interface FrameRunner {
  /** Runs that could start now. */
  readonly idle: number
  /** Runs that could wait behind those that have begun. */
  readonly ahead: number
  /** Instances that are up, where they come one after another. */
  readonly ready?: number
  /**
   * Buffers of the job may move to another thread, and are then gone from this one whatever becomes of the run.
   *
   * @throws what keeps the whole batch from having boxes
   */
  run(job: DetectorJob): Promise<DetectorAnswer>
  /** Of steps beside those for which there are no boxes, counted since the last call. */
  takeFailures?(): readonly StepFailures[]
  /** Idempotent, never rejects. */
  stop(drainMs: number): Promise<unknown>
}

/** Written over by each run, so that none makes garbage. */
type Times = { -readonly [Name in keyof ExecutionTimes]: ExecutionTimes[Name] }
type Waiting = QueueItem & Readonly<{ frame: Frame }>
type Settle = (outcome: () => void) => void
type Places = readonly Readonly<{ waiting: Waiting; settle: Settle }>[]

/** Frames from cameras through the scheduler to the instances, and results back in order. */
export class ScheduledDetector implements CameraDetector, BatchRunner<Waiting> {
  readonly #newest: NewestPerStream<Waiting>
  readonly #scheduler: BatchScheduler<Waiting>
  readonly #order = new StreamOrder()
  readonly #frameBytes: number
  readonly #running = new Set<Promise<void>>()
  /** Of the run that ended last. */
  readonly #times: Times = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
  #stopped: Promise<void> | undefined
  #info: DetectorInfo

  constructor(
    info: DetectorInfo,
    readonly maxQueueDelayMs: number,
    readonly pool: FrameRunner,
    readonly listener: DetectorListener,
    readonly doubts: ClassDoubts,
    /** Counts frames as requests of the detector; absent where that counts for itself. */
    readonly recorder?: StatisticsRecorder,
    /** Run for each frame with boxes, while the instances go on. */
    readonly later?: LaterSteps,
  ) {
    this.#frameBytes = frameBytes(info.format)
    this.#info = info
    this.#newest = new NewestPerStream(limitsOf(info, maxQueueDelayMs))
    this.#scheduler = new BatchScheduler(this.#newest, this, timers)
  }

  get info(): DetectorInfo {
    return this.#info
  }

  /** More sizes are warm, or fewer are to come. */
  useSizes(sizes: SizesInUse): void {
    this.#info = { ...this.#info, sizes }
    this.#newest.limits = limitsOf(this.#info, this.maxQueueDelayMs)
  }

  get instancesReady(): number {
    return this.pool.ready ?? this.info.instances
  }

  statistics(): readonly CountedStatistics[] {
    if (this.recorder === undefined) return []
    this.recorder.pending = this.#newest.waiting
    return [counted(this.recorder)]
  }

  offer(frame: Frame): void {
    if (this.#stopped !== undefined) {
      this.listener.shed(frame, 'stopping')
      return
    }
    if (frame.rgbHwc.byteLength !== this.#frameBytes) {
      this.listener.shed(frame, 'inference_failed', this.#wrongSize(frame))
      return
    }
    const superseded = this.#newest.put({ streamId: frame.cameraId, enqueuedMs: nowMs(), frame })
    this.#scheduler.pump()
    if (superseded !== undefined) this.listener.superseded(superseded.frame)
  }

  removeCamera(cameraId: string): void {
    const waiting = this.#newest.removeStream(cameraId)
    if (waiting !== undefined) this.listener.shed(waiting.frame, 'stopping')
  }

  stop(drainMs: number): Promise<void> {
    this.#stopped ??= this.#stop(drainMs)
    return this.#stopped
  }

  takeStepFailures(): readonly StepFailures[] {
    return [...(this.later?.takeFailures() ?? []), ...(this.pool.takeFailures?.() ?? [])]
  }

  /** An instance became free. */
  pump(): void {
    if (this.#stopped === undefined) this.#scheduler.pump()
  }

  get idle(): number {
    return this.#stopped === undefined ? this.pool.idle : 0
  }

  get ahead(): number {
    return this.#stopped === undefined ? this.pool.ahead : 0
  }

  start(batch: readonly Waiting[]): void {
    const places = batch.map((waiting) => ({ waiting, settle: this.#order.enter(waiting.streamId) }))
    const run = this.#run(places).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #run(places: Places): Promise<void> {
    const frames = places.map(({ waiting }) => waiting.frame)
    const job = { frames: frames.map((frame) => ({ rgbHwc: frame.rgbHwc, geometry: geometryOf(frame) })) }
    try {
      const answer = await this.pool.run(job)
      if (this.recorder !== undefined) this.#count(places, answer, this.recorder)
      const last = places.map(({ waiting, settle }, index) =>
        this.#end(waiting, settle, answer, answer.frames[index]),
      )
      if (this.later !== undefined) await Promise.all(last.filter((each) => each !== undefined))
    } catch (error) {
      const cause = this.#stopped === undefined ? 'inference_failed' : 'stopping'
      const endedMs = nowMs()
      const reason = cause === 'stopping' ? 'CANCELED' : 'BACKEND'
      for (const { waiting } of places)
        this.recorder?.recordFailure(reason, (endedMs - waiting.enqueuedMs) * 1e6)
      for (const { waiting, settle } of places) settle(() => this.listener.shed(waiting.frame, cause, error))
    }
  }

  /** Tells the listener, once later steps have said what they have to say. */
  #end(
    waiting: Waiting,
    settle: Settle,
    answer: DetectorAnswer,
    found: FrameDetections | undefined,
  ): Promise<void> | undefined {
    if (found === undefined) return void settle(() => this.listener.shed(waiting.frame, 'inference_failed'))
    const { later } = this
    if (later === undefined || found.rows.length === 0)
      return void settle(() => this.#deliver(waiting, answer, found))
    const beganMs = nowMs()
    const { rgbHwc, rows } = found
    const { cameraId } = waiting.frame
    return later.run({ cameraId, rgbHwc, geometry: geometryOf(waiting.frame), rows }).then((result) => {
      const postprocessMs = found.postprocessMs + nowMs() - beganMs
      settle(() => this.#deliver(waiting, answer, { ...found, ...result, postprocessMs }))
    })
  }

  /** Each frame as a request. */
  #count(places: Places, answer: DetectorAnswer, recorder: StatisticsRecorder): void {
    const { startedMs, inferMs, inputMs, frames } = answer
    const times = this.#times
    times.shapes = answer.shapes
    times.computeInputNs = inputMs * 1e6
    times.computeInferNs = (inferMs - inputMs) * 1e6
    times.computeOutputNs = 0
    for (const { postprocessMs } of frames) times.computeOutputNs += postprocessMs * 1e6
    recorder.recordExecution(frames.length, times)
    const endedMs = nowMs()
    for (const { waiting } of places) {
      const queueNs = Math.max(0, startedMs - waiting.enqueuedMs) * 1e6
      recorder.recordSuccess(1, (endedMs - waiting.enqueuedMs) * 1e6, queueNs, times)
    }
  }

  #deliver({ frame, enqueuedMs }: Waiting, answer: DetectorAnswer, found: FrameDetections): void {
    if (found.belowFirst > 0) this.doubts.belowFirst()
    const rows = soundRows(found.rows)
    this.#doubtScores(found, (found.rows.length - rows.length * rowLength) / rowLength)
    this.listener.detected(
      { ...frame, rgbHwc: found.rgbHwc },
      {
        detections: toDetections(found, rows, this.info.labels, this.doubts),
        timingsMs: {
          queue: Math.max(0, answer.startedMs - enqueuedMs),
          infer: answer.inferMs,
          postprocess: found.postprocessMs,
        },
        batchSize: answer.frames.length,
      },
    )
  }

  /** @param late - boxes that steps behind the detector gave, and that are none. */
  #doubtScores({ strange, unsound, rows }: FrameDetections, late: number): void {
    if (strange === undefined && late === 0) return
    const reason = this.doubts.scores(strange ?? strangeIn(rows, 1))
    const boxes = (this.#info.scoreFault?.boxes ?? 0) + unsound + late
    this.#info = { ...this.#info, scoreFault: { boxes, reason } }
  }

  async #stop(drainMs: number): Promise<void> {
    for (const { frame } of this.#scheduler.clear()) this.listener.shed(frame, 'stopping')
    await this.pool.stop(drainMs)
    await Promise.all(this.#running)
    await this.later?.stop(0)
  }

  #wrongSize(frame: Frame): TensorShapeError {
    const { widthPx, heightPx } = this.info.format.input
    return new TensorShapeError(
      `frame ${frame.seq} of camera "${frame.cameraId}" has ${frame.rgbHwc.byteLength} bytes, but ${widthPx}x${heightPx} RGB needs ${this.#frameBytes}`,
    )
  }
}

/** Batches are no larger than the largest size that is warm. */
function limitsOf({ maxBatchSize, sizes }: DetectorInfo, maxQueueDelayMs: number): BatchLimits {
  if (sizes === undefined) return { maxBatchSize, maxQueueDelayMs }
  const { warm } = sizes
  return { maxBatchSize: warm.at(-1)?.size ?? 1, maxQueueDelayMs, choice: new RunChoice(warm) }
}

function geometryOf({ letterbox, regionPx, source }: Frame): DetectorJob['frames'][number]['geometry'] {
  return { letterbox, regionPx, source }
}

/** Where the rows of boxes begin whose score is one, and whose place is a place: steps behind the detector may give anything. */
function soundRows(rows: Float32Array): readonly number[] {
  const sound: number[] = []
  for (let at = 0; at + rowLength <= rows.length; at += rowLength) {
    const sum = rows[at]! + rows[at + 2]! + rows[at + 3]! + rows[at + 4]! + rows[at + 5]!
    if (isScore(rows[at + 1]!) && Number.isFinite(sum)) sound.push(at)
  }
  return sound
}

function toDetections(
  { rows, attributes = [] }: FrameDetections,
  sound: readonly number[],
  labels: readonly string[],
  doubts: ClassDoubts,
): Detection[] {
  const detections: Detection[] = []
  for (const at of sound) {
    const classId = rows[at]!
    const label = labelOf(labels, classId)
    if (label === undefined) doubts.unnamed(classId)
    detections.push({
      label: label ?? `class_${classId}`,
      score: Math.min(rows[at + 1]!, 1),
      boxPx: { x1: rows[at + 2]!, y1: rows[at + 3]!, x2: rows[at + 4]!, y2: rows[at + 5]! },
      ...attributesAt(attributes, at / rowLength),
    })
  }
  return detections
}

function attributesAt(
  all: NonNullable<FrameDetections['attributes']>,
  row: number,
): Pick<Detection, 'attributes'> {
  const attributes = all[row]
  return attributes === undefined || attributes.length === 0 ? {} : { attributes }
}
