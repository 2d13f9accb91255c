import type { ModelConfig } from '../repository/model-config.js'
import type { Tensor } from '../tensors/tensor.js'
import { reshaped } from './check-request.js'

/** Gives outputs, which have the shapes of `reshape`, those that clients see. */
export function outputShapes(config: ModelConfig): (tensor: Tensor) => Tensor {
  const batched = (config.max_batch_size ?? 0) > 0
  const reshapes = new Map(config.output.map((output) => [output.name, output]))
  if (config.output.every((output) => output.reshape === undefined)) return (tensor) => tensor
  return (tensor) => {
    const output = reshapes.get(tensor.name)
    if (output?.reshape === undefined) return tensor
    return { ...tensor, shape: reshaped(tensor.shape, output.reshape.shape, output.dims, batched) }
  }
}
