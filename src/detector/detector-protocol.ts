import type { Attribute } from '../vision/detection.js'
import type { SizePx } from '../vision/letterbox.js'
import type { ExecutionProvider } from '../config/inference.js'
import type { OrtSessionOptions } from '../backends/onnxruntime/ort-session.js'
import type { ProviderNote } from '../backends/onnxruntime/provider-notes.js'
import type { BatchSizes, SizeCost } from '../runtime/batch-sizes.js'
import type { WarmUp } from '../runtime/warm-up.js'
import type { Float16Comparison } from './float16.js'
import type { FrameGeometry } from './frame-geometry.js'
import type { StrangeScores } from './strange-scores.js'
import type { HeadPlan } from './heads/head.js'
import type { InputPlan } from './input-tensor.js'

/** What the worker of a detector is loaded with, told, and answers; bodies of the messages of `worker-runtime.ts`. */
export type DetectorLoad = Readonly<{
  /** The first whose providers run it is taken. */
  candidates: readonly DetectorCandidate[]
  scoreThreshold: number
  iouThreshold: number
  maxDetections: number
  /** What sizes take of the card's memory is to be known. */
  measuresMemory: boolean
}>

/** A model and how it is fed and read. */
export type DetectorCandidate = Readonly<{
  /** It is the one before it in float16: both are measured where that runs on a GPU with a session for each size, and the faster is taken. */
  isFloat16: boolean
  session: OrtSessionOptions
  input: InputPlan
  /** Where the model may not run at the size of the input: one at which it does. */
  exportedSize?: SizePx
  head: HeadPlan
  /** Most rows of the head that a GPU hands over for a frame; 0: all. */
  topRows: number
  /** Of its `model_warmup`. */
  warmUps: readonly WarmUp[]
  /** Its configuration has a batch dimension. */
  batched: boolean
  /** Most frames in one run, by device. */
  maxBatchSize: Readonly<{ cpu: number; gpu: number }>
  /** Of runs on a GPU whose sessions take one shape each; the last is the largest batch there. */
  batchSizes: BatchSizes
}>

export type DetectorReady = Readonly<{
  /** Which of the candidates runs. */
  candidate: number
  /** Why it runs at its exported size, and not at that of the input. */
  misfit?: string
  provider: ExecutionProvider
  notes: readonly ProviderNote[]
  loadMs: number
  warmUpMs: number
  /**
   * Where sessions take one size each: all of them, ascending. Only the first has run; the others wait for {@link DetectorJob.warms}: each takes a
   * GPU seconds for the first time.
   */
  sizes?: BatchSizes
  /** What those of them take that are warm. */
  sizeCosts?: readonly SizeCost[]
  /** Why sizes that were asked for are not among them. */
  sizesLeftOut?: string
  /** What was measured of the candidate in float32 and the one in float16. */
  float16?: Float16Comparison
  /** On a GPU: how many rows of the head it hands over for a frame, or why all of them. */
  headRows?: number | string
}>

/** `rgbHwc` is transferred, and comes back in the result at the same index. */
export type DetectorJob = Readonly<{
  frames: readonly Readonly<{ rgbHwc: ArrayBuffer; geometry: FrameGeometry }>[]
  /** In the place of frames: a size to be run for the first time, and to be timed. */
  warms?: number
}>

/** Numbers of one detection in {@link FrameDetections.rows}. */
export const rowLength = 6

export type FrameDetections = Readonly<{
  rgbHwc: ArrayBuffer
  /** class, score, x1, y1, x2, y2 of each detection, in source pixels, best first. */
  rows: Float32Array<ArrayBuffer>
  postprocessMs: number
  /** Boxes left out for a class with a number below that of the first label. */
  belowFirst: number
  /** Boxes left out for a score outside of 0..1 or a place that is no number. */
  unsound: number
  /** What the model gave in the place of scores, in any frame so far. */
  strange: StrangeScores | undefined
  /** What later steps say of each; absent: nothing. */
  attributes?: readonly (readonly Attribute[])[]
}>

export type DetectorAnswer = Readonly<{
  /** Monotonic time at which the worker began, comparable with the engine's. */
  startedMs: number
  /** Filling the input and running the model, for the whole batch. */
  inferMs: number
  /** Filling the input alone. */
  inputMs: number
  /** Absent: the session has run with them before. */
  shapes?: 'first'
  frames: readonly FrameDetections[]
  /** Of the size that was to be run for the first time. */
  sizeCost?: SizeCost
}>
