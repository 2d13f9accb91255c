import type { ExecutionProvider } from '../../config/inference.js'
import type { OrtSessionOptions } from './ort-session.js'
import type { ProviderNote } from './provider-notes.js'
import type { ScalarTensors } from '../../repository/match-tensors.js'
import type { Datatype, OnnxType } from '../../tensors/element-type.js'
import type { BatchSizes, SizeCost } from '../../runtime/batch-sizes.js'
import type { RunShapes } from '../../runtime/statistics.js'
import type { PackedInput } from '../pack-inputs.js'

/** What batches of a model are filled up to where a session may see one shape only. */
export type BatchRows = Readonly<{
  /** The last is `max_batch_size`. */
  sizes: BatchSizes
  /** One row each of the inputs that tell a sequence model that a row has no sequence. */
  idle: Readonly<Record<string, Uint8Array>>
}>

/** What the thread of an ONNX model is loaded with. */
export type OnnxLoad = Readonly<{
  session: OrtSessionOptions
  /** By the names of the model. */
  inputTypes: Readonly<Record<string, OnnxType>>
  scalars: ScalarTensors
  /** `undefined` for models without a batch dimension: they run in the shapes that clients send. */
  batchRows: BatchRows | undefined
  /** What its sessions take of the card's memory is to be known. */
  measuresMemory: boolean
}>

export type OnnxReady = Readonly<{
  provider: ExecutionProvider
  notes: readonly ProviderNote[]
  /** Sizes of batches that have a session each; undefined: batches run as they are. */
  sizes: BatchSizes | undefined
  /** Why sizes that were asked for are not among them. */
  sizesLeftOut: string | undefined
}>

export type OnnxJob = Readonly<{
  inputs: readonly PackedInput[]
  outputs: readonly string[]
  /** A size to be run for the first time, and to be timed: inputs have one row, which is repeated. Outputs stay there. */
  warms?: number
}>

export type OnnxJobOutput = Readonly<{
  name: string
  datatype: Datatype
  shape: readonly number[]
  data: Uint8Array
}>

/** Times are of `nowMs`. */
export type OnnxAnswer = Readonly<{
  outputs: readonly OnnxJobOutput[]
  runStartedMs: number
  runEndedMs: number
  /** In the thread, before the run. */
  copiedBytes: number
  shapes: RunShapes | undefined
  /** Of the size that was to be run for the first time. */
  sizeCost?: SizeCost
}>
