import type { Log } from '../lifecycle/log.js'
import type { ModelConfig } from '../repository/model-config.js'
import type { ExecutionTimes, ModelStatistics } from './statistics.js'
import type { SequencePosition } from './infer.js'
import type { GroupInstance } from './instances/slot.js'
import type { Tensor, TensorSpec } from '../tensors/tensor.js'

/** What a backend learns of the model it is to run. */
export type BackendContext = Readonly<{
  name: string
  version: string
  config: ModelConfig
  /** `<repository>/<model>/<version>`; it need not exist for backends without a file. */
  versionDir: string
  log: Log
}>

/** One request's share of a batch. */
export type Execution = Readonly<{
  /** By name; optional inputs may be missing. */
  inputs: ReadonlyMap<string, Tensor>
  /** Outputs somebody wants; others may be left out. */
  outputs: readonly string[]
  /** Items: the first size of the shapes if the model has a batch dimension, else 1. */
  batchSize: number
  sequence: SequencePosition | undefined
  signal: AbortSignal | undefined
}>

/** One entry for each execution, in order: its outputs, or what went wrong with it alone. */
export type BatchResult = Readonly<{
  results: readonly (readonly Tensor[] | Error)[]
  times: ExecutionTimes
}>

/** Runs one batch at a time. Several of one model run side by side. */
export type BackendInstance = GroupInstance<readonly Execution[], BatchResult>

/** A way to run models, by the name a `config.pbtxt` gives as `backend`. */
export interface Backend {
  readonly name: string
  /**
   * Inputs and outputs where the configuration has none; what the configuration says, where it does.
   *
   * @throws ModelInvalidError, ModelConfigError naming tensor or parameter
   */
  open(context: BackendContext): Promise<OpenedModel>
}

/** A model that a backend has looked at and can start. */
export interface OpenedModel {
  /** With what the model file adds. */
  readonly config: ModelConfig
  readonly platform: string
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
  /** `dynamic_batching` was filled in and not written: it is left off where a probe at load says that batches do not pay. */
  readonly batchingIsAutomatic?: boolean
  /** An instance keeps nothing between runs but memory: another may take its place, so that the system gets that back. */
  readonly isReplaceable?: boolean
  /** Whether the instances that were started run on a GPU; absent for backends that never do. */
  onGpu?(): boolean
  /** Memory of GPUs that its instances were measured to take; absent for backends that run on none. */
  gpuMemory?(): ModelStatistics['memory']
  /** Inputs of dims [1] that a request may also give no dimension: they have none in the model. */
  readonly scalarInputs?: readonly string[]
  /** Class names in the model file, for outputs that have none in the model's folder. */
  readonly labels?: readonly string[]
  /** Why what stands there in the place of class names is not understood. */
  readonly labelsProblem?: string
  /**
   * Starts one instance, warm; where sessions take certain sizes of batches, for the first of them.
   *
   * @param index - counts over all groups of the model.
   * @param onBegan - called with the number of its thread before that loads anything, so that what it takes is known as the model's.
   */
  start(index: number, onBegan?: (thread: number) => void): Promise<BackendInstance>
  close(): Promise<void>
}
