import type { StageTimings } from '../vision/detection.js'
import type { FrameCounts } from '../vision/accounting.js'
import type { PictureVerdict } from '../vision/coverage.js'
import type { SizePx } from '../vision/letterbox.js'

/**
 * A result as it leaves the engine: the text of the public message but for the time of publishing, and beside it what is needed of it
 * where the text is not read.
 *
 * @typeParam Text - `openDetectionsJson`, or the bytes of it.
 */
export type EngineResult<Text extends string | Buffer = Buffer> = Readonly<{
  cameraId: string
  seq: number
  /** Wall time. */
  capturedAtMs: number
  /** Monotonic, comparable between processes. */
  arrivedMs: number
  source: SizePx
  /** Name of the model. */
  model: string
  /** Absent where the result of an earlier frame was used again. */
  run?: Readonly<{ timingsMs: StageTimings; batchSize: number }>
  /** How many detections have each label. */
  labels: readonly (readonly [label: string, detections: number])[]
  /** Between the frames received since the result before. */
  decodeGapsMs: readonly number[]
  counts: FrameCounts
  text: Text
  /** A picture message. */
  picture?: Buffer
}>

/** What an engine tells of each of its cameras, once a second. */
export type CameraBeat = Readonly<{
  cameraId: string
  counts: FrameCounts
  decoderCpuSeconds: number
  frozen: boolean
  picture: PictureVerdict
}>
