import type { Service } from '../lifecycle/service.js'
import type { ModelConfig } from '../repository/model-config.js'
import type { SizesInUse } from './batch-sizes.js'
import type { InferRequest } from './infer.js'
import type { ModelStatistics } from './statistics.js'
import type { Tensor, TensorSpec } from '../tensors/tensor.js'

/** One version of a model that is loaded: scheduler, instances and their statistics, or the graph of an ensemble. */
export interface LoadedModel extends Service {
  readonly name: string
  readonly version: string
  /** As written, with what the model file adds. */
  readonly config: ModelConfig
  /** `onnxruntime_onnx`, `ensemble`, or the name of the backend. */
  readonly platform: string
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
  /** Whether it runs on a GPU. Absent: it does not. */
  readonly onGpu?: boolean
  /** How far it is with sizes of batches that have a session each. Absent: batches run as they are. */
  readonly sizes?: SizesInUse | undefined
  /** Of an ensemble: outputs with a row for each box that was found. */
  readonly rowsPerBox?: readonly string[]
  /** Class names of an output, for classification; empty if it has none. */
  labels(output: string): readonly string[]
  statistics(): ModelStatistics
  /** Names what it computes now: configuration and files, its own or of the models it runs. Those with the same answer alike. */
  generation(): Promise<string>
  /** Resolves with the reason if the model can serve no more, and is to be loaded anew. Absent: it always can. */
  readonly broken?: Promise<string> | undefined
  /**
   * Checks, queues and runs a request.
   *
   * @returns the outputs that were asked for, in their order, or all. They belong to the caller.
   * @throws ServingError
   */
  infer(request: InferRequest): Promise<readonly Tensor[]>
  /** Refuses new requests, lets the others finish for `drainMs`, releases everything. Idempotent, never rejects. */
  stop(drainMs: number): Promise<void>
}
