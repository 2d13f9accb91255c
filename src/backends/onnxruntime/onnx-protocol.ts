import type { ExecutionProvider } from '../../config/inference.js'
import type { OrtSessionOptions } from './ort-session.js'
import type { ProviderNote } from './provider-notes.js'
import type { Datatype, OnnxType } from '../../tensors/element-type.js'
import type { PackedInput } from '../pack-inputs.js'

/** What batches of a model are filled up to where its session may see one shape only. */
export type FullBatch = Readonly<{
  /** `max_batch_size`, at least 1. */
  rows: number
  /** One row each of the inputs that tell a sequence model that a row has no sequence. */
  idle: Readonly<Record<string, Uint8Array>>
}>

/** What the thread of an ONNX model is loaded with. */
export type OnnxLoad = Readonly<{
  session: OrtSessionOptions
  /** By the names of the model. */
  inputTypes: Readonly<Record<string, OnnxType>>
  /** `undefined` for models without a batch dimension: they run in the shapes that clients send. */
  fullBatch: FullBatch | undefined
}>

export type OnnxReady = Readonly<{ provider: ExecutionProvider; notes: readonly ProviderNote[] }>

export type OnnxJob = Readonly<{
  inputs: readonly PackedInput[]
  outputs: readonly string[]
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
}>
