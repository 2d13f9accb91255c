import type { Attribute } from '../vision/detection.js'
import type { ExecutionProvider } from '../config/inference.js'
import type { OrtSessionOptions } from '../backends/onnxruntime/ort-session.js'
import type { ProviderNote } from '../backends/onnxruntime/provider-notes.js'
import type { WarmUp } from '../runtime/warm-up.js'
import type { FrameGeometry } from './frame-geometry.js'
import type { HeadPlan } from './heads/head.js'
import type { InputPlan } from './input-tensor.js'

/** What the worker of a detector is loaded with, told, and answers; bodies of the messages of `worker-runtime.ts`. */
export type DetectorLoad = Readonly<{
  /** The first whose providers run it is taken. */
  candidates: readonly DetectorCandidate[]
  scoreThreshold: number
  iouThreshold: number
  maxDetections: number
}>

/** A model and how it is fed and read. */
export type DetectorCandidate = Readonly<{
  session: OrtSessionOptions
  input: InputPlan
  head: HeadPlan
  /** Of its `model_warmup`. */
  warmUps: readonly WarmUp[]
  /** Its configuration has a batch dimension. */
  batched: boolean
  /** Most frames in one run, by device. */
  maxBatchSize: Readonly<{ cpu: number; gpu: number }>
}>

export type DetectorReady = Readonly<{
  /** Which of the candidates runs. */
  candidate: number
  provider: ExecutionProvider
  notes: readonly ProviderNote[]
  loadMs: number
  warmUpMs: number
}>

/** `rgbHwc` is transferred, and comes back in the result at the same index. */
export type DetectorJob = Readonly<{
  frames: readonly Readonly<{ rgbHwc: ArrayBuffer; geometry: FrameGeometry }>[]
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
  frames: readonly FrameDetections[]
}>
