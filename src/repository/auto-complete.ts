import {
  hiddenInputs,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  stateOutputs,
} from './model-config.js'
import type { OnnxInfo } from './onnx-file.js'
import { configOfOnnx } from '../tensors/element-type.js'
import type { ModelTensor } from '../tensors/tensor.js'

/** Batch size given to a model that can batch and does not say how much; the default of Triton's ONNX backend. */
export const defaultMaxBatchSize = 4

/**
 * Fills in what a configuration leaves out from the model file: inputs, outputs, and the batch size when none of them is given.
 *
 * A model can batch if the first dimension of every tensor may vary. Tensors of the sequence scheduler are left out. A scalar has one
 * dimension, of size 1, as with Triton.
 */
export function autoComplete(config: ModelConfig, name: string, onnx: OnnxInfo): ModelConfig {
  const saysNothing =
    config.max_batch_size === undefined && config.input.length === 0 && config.output.length === 0
  const maxBatchSize = saysNothing && canBatch(onnx) ? defaultMaxBatchSize : (config.max_batch_size ?? 0)
  const hidden = { inputs: hiddenInputs(config), outputs: stateOutputs(config) }
  const inputs = onnx.inputs.filter((tensor) => !hidden.inputs.has(tensor.name))
  const outputs = onnx.outputs.filter((tensor) => !hidden.outputs.has(tensor.name))
  const hasScheduler = config.dynamic_batching ?? config.sequence_batching ?? config.ensemble_scheduling
  return {
    ...config,
    name,
    ...(config.backend === undefined ? { backend: 'onnxruntime' } : {}),
    max_batch_size: maxBatchSize,
    input: config.input.length > 0 ? config.input : inputs.map((tensor) => ioOf(tensor, maxBatchSize)),
    output: config.output.length > 0 ? config.output : outputs.map((tensor) => ioOf(tensor, maxBatchSize)),
    ...(saysNothing && maxBatchSize > 1 && hasScheduler === undefined
      ? { dynamic_batching: { preferred_batch_size: [], priority_queue_policy: {} } }
      : {}),
  }
}

export function canBatch(onnx: OnnxInfo): boolean {
  return [...onnx.inputs, ...onnx.outputs].every((tensor) => typeof tensor.shape[0] === 'string')
}

function ioOf(tensor: ModelTensor, maxBatchSize: number): ModelInput & ModelOutput {
  const whole = tensor.shape.length === 0 ? [1] : tensor.shape
  const shape = maxBatchSize > 0 ? tensor.shape.slice(1) : whole
  return {
    name: tensor.name,
    data_type: configOfOnnx(tensor.type),
    dims: shape.map((size) => (typeof size === 'number' ? size : -1)),
  }
}
