import type { Service } from '../lifecycle/service.js'
import type { Detection, StageTimings } from '../vision/detection.js'
import type { ExecutionProvider } from '../config/inference.js'
import type { Float16Comparison } from './float16.js'
import type { StepFailures } from './later-steps.js'
import type { BackendName } from '../repository/supported-config.js'
import type { Frame, FrameFormat } from '../vision/frame.js'
import type { SizePx } from '../vision/letterbox.js'
import type { SizesInUse } from '../runtime/batch-sizes.js'
import type { CountedStatistics } from '../runtime/counted-statistics.js'
import type { ShedCause } from '../vision/accounting.js'

/** A model gives numbers in the place of scores. */
export type ScoreFault = Readonly<{ boxes: number; reason: string }>

/** What runs behind the cameras. */
export type DetectorInfo = Readonly<{
  /** What records name. */
  model: Readonly<{ name: string; version: string }>
  /** The model file behind it; another one on a GPU where the ensemble says so. */
  detector: Readonly<{ name: string; version: string }>
  labels: readonly string[]
  /** What frames must look like to enter. */
  format: FrameFormat
  /** What decided the size of the input, for people. */
  inputFrom: string
  /** Where the cameras decided it: the size of the model's export. */
  exportedInput?: SizePx
  /** Detector head, as recognised or as configured. */
  head: string
  /** Of the model file; the backend of a detector that has none here. */
  provider: ExecutionProvider | BackendName
  /** GPU that it runs on, where the provider takes one by its number. */
  deviceId?: number
  /** Why a provider earlier in the configured order does not run. */
  providerNotes: readonly string[]
  /** Those of them that are faults: the provider is installed. */
  providerFailures: readonly string[]
  instances: number
  /** Where a session takes one size of batch: once all sizes are warm. */
  maxBatchSize: number
  sizes?: SizesInUse
  /** It gives numbers that are no scores: boxes that were left out for it, and what to do. */
  scoreFault?: ScoreFault
  /** On a GPU: the model in float16 that could run in the place of the one in float32, what both took there, and whether it does. */
  float16?: Readonly<{ model: string; isTaken: boolean; comparison: Float16Comparison }>
}>

export type DetectorResult = Readonly<{
  detections: readonly Detection[]
  timingsMs: StageTimings
  /** Frames that shared the run. */
  batchSize: number
}>

/** What the detector tells the engine. With each call the frame's buffer belongs to the listener again. */
export interface DetectorListener {
  detected(frame: Frame, result: DetectorResult): void
  /** A newer frame of the camera came before this one was started. */
  superseded(frame: Frame): void
  shed(frame: Frame, cause: ShedCause, error?: unknown): void
  /** An instance ended without being asked; the detector starts another. */
  instanceExited(error: unknown): void
  /** A run does not end, and only the end of the process ends it. */
  hung(error: unknown): void
}

/**
 * The ensemble as the cameras see it: they enter after preprocessing, which ffmpeg did, and get boxes in source pixels.
 *
 * Keeps at most one waiting frame per camera, serves cameras round-robin, keeps the order within a camera.
 */
export interface CameraDetector extends Service {
  /** As it is now. */
  readonly info: DetectorInfo
  /** Of its instances, those that are up: on a GPU it runs with the first. */
  readonly instancesReady: number
  /** What its models did, by model. */
  statistics(): readonly CountedStatistics[]
  /** Takes the frame and its buffer. Every offered frame comes back in exactly one call of the listener. */
  offer(frame: Frame): void
  /** Forgets the camera; its waiting frame is shed as `stopping`. */
  removeCamera(cameraId: string): void
  /** How often steps of the ensemble failed behind the boxes, since the last call. */
  takeStepFailures(): readonly StepFailures[]
  /** Idempotent, never rejects. Runs in flight may finish for `drainMs`; waiting frames are shed as `stopping`. */
  stop(drainMs: number): Promise<void>
}
