import type { InferenceConfig } from '../../config/inference.js'
import type { CameraDetector, DetectorResult } from '../../detector/camera-detector.js'
import type { FrameGeometry } from '../../detector/frame-geometry.js'
import type { DetectionLimits } from '../../detector/frame-reader.js'
import { createCameraDetector } from '../../ensemble/create-camera-detector.js'
import type { StepModels } from '../../ensemble/open-camera-graph.js'
import { InternalError } from '../../errors.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import { findFolder, type Repositories } from '../../repository/repository-files.js'
import type { Still } from '../../sources/still.js'
import { type Frame, frameBytes } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import { letterboxedFrame } from './letterboxed-frame.js'
import type { Picture, PictureScorer, ScoredPicture, ScorerInfo } from './picture-scorer.js'

export type RepositoryScorerOptions = Readonly<{
  repositories: Repositories
  /** An ensemble for cameras, or a detector model. */
  model: string
  inference: InferenceConfig
  /** What counts as a detection, before what the model and `inference` say. */
  limits?: Partial<DetectionLimits>
  /** Runs the steps of an ensemble that are not fused; absent: it must have none. */
  steps?: StepModels
  log: Log
}>

type Waiting = Readonly<{ resolve: (result: DetectorResult) => void; reject: (error: unknown) => void }>

/** Scores pictures as those of a camera: decoded, letterboxed, batched and read by the same code. */
class RepositoryScorer implements PictureScorer {
  readonly info: ScorerInfo
  readonly #pool: FramePool
  #lanes = 0
  #seq = 0

  constructor(
    readonly detector: CameraDetector,
    readonly outcomes: Outcomes,
  ) {
    const { model, labels, format, provider, instances, maxBatchSize } = detector.info
    const { widthPx, heightPx } = format.input
    // One is decoded while another one is looked at.
    const atOnce = Math.min(64, 2 * instances * maxBatchSize)
    const name = `${model.name}:${model.version}`
    const input = `${widthPx}x${heightPx}`
    this.info = { name, labels, where: provider, input, inputPx: format.input, atOnce }
    this.#pool = new FramePool(frameBytes(format), atOnce)
    outcomes.pool = this.#pool
  }

  async score(picture: Picture): Promise<ScoredPicture> {
    const beganMs = nowMs()
    const letterboxed = await letterboxedFrame(picture, this.detector.info.format, this.#pool)
    const decodedMs = nowMs()
    const frame = this.#frame(letterboxed, decodedMs)
    const { detections, timingsMs } = await this.outcomes.of(frame, () => this.detector.offer(frame))
    const { infer, postprocess } = timingsMs
    return { size: frame.source, detections, decodeMs: decodedMs - beganMs, inferMs: infer + postprocess }
  }

  async stop(drainMs: number): Promise<void> {
    await this.detector.stop(drainMs)
  }

  /** Each from a camera of its own, so that none takes the place of another. */
  #frame(
    { rgbHwc, source, regionPx, letterbox }: Pick<Still, 'rgbHwc'> & FrameGeometry,
    arrivedMs: number,
  ): Frame {
    return {
      cameraId: this.outcomes.freeLane() ?? `picture-${++this.#lanes}`,
      seq: ++this.#seq,
      capturedAtMs: wallMs(),
      arrivedMs,
      ptsMs: 0,
      quality: 'ok',
      source,
      regionPx,
      letterbox,
      rgbHwc,
    }
  }
}

/** What the detector tells of each frame, to whoever waits for it. */
class Outcomes {
  pool: FramePool | undefined
  readonly #waiting = new Map<string, Waiting>()
  readonly #free: string[] = []
  #hung: Error | undefined

  freeLane(): string | undefined {
    return this.#free.pop()
  }

  of({ cameraId }: Frame, offer: () => void): Promise<DetectorResult> {
    return new Promise((resolve, reject) => {
      if (this.#hung !== undefined) return reject(this.#hung)
      this.#waiting.set(cameraId, { resolve, reject })
      offer()
    })
  }

  ended({ cameraId, rgbHwc }: Frame, tell: (waiting: Waiting) => void): void {
    this.pool?.give(rgbHwc)
    const waiting = this.#waiting.get(cameraId)
    this.#waiting.delete(cameraId)
    this.#free.push(cameraId)
    if (waiting !== undefined) tell(waiting)
  }

  /** Nothing that waits will ever end. */
  hung(reason: unknown): void {
    this.#hung = reason instanceof Error ? reason : new InternalError(String(reason))
    for (const { reject } of this.#waiting.values()) reject(this.#hung)
    this.#waiting.clear()
  }
}

/**
 * Opens a model of a repository as cameras do, and resolves when it has run once.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, HeadUnknownError, ProviderUnavailableError
 */
export async function openRepositoryScorer(options: RepositoryScorerOptions): Promise<PictureScorer> {
  const { repositories, model, inference, limits, steps, log } = options
  // What is missing is told in words for who named it here, and not those for a setting of cameras.
  findFolder(repositories, model)
  const outcomes = new Outcomes()
  const detector = await createCameraDetector({
    repositories,
    ensemble: model,
    inference,
    ...(limits && { limits }),
    ...(steps && { steps }),
    log,
    listener: {
      detected: (frame, result) => outcomes.ended(frame, ({ resolve }) => resolve(result)),
      superseded: (frame) =>
        outcomes.ended(frame, ({ reject }) => reject(new InternalError('a picture was superseded'))),
      shed: (frame, cause, error) =>
        outcomes.ended(frame, ({ reject }) =>
          reject(error ?? new InternalError(`a picture was not analysed: ${cause}`)),
        ),
      instanceExited: (error) => log.warn({ err: error }, 'an inference instance ended'),
      hung: (error) => outcomes.hung(error),
    },
  })
  return new RepositoryScorer(detector, outcomes)
}
