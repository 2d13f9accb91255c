import { TensorShapeError } from '../../runtime/errors.js'
import type { Pieces } from '../../lifecycle/in-turns.js'
import { elementCount, type Tensor } from '../../tensors/tensor.js'
import { elementBytes } from '../../tensors/element-type.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { OnnxJobOutput } from './onnx-protocol.js'
import { itemOffsets } from './strings.js'

/**
 * The share of each request in the outputs of a batch, over the same memory.
 *
 * @param sizes - items of each request, in order.
 * @throws ServingError INTERNAL, by a TensorShapeError, for an output without an item for each item of the batch
 */
export function* splitOutputs(
  outputs: readonly OnnxJobOutput[],
  sizes: readonly number[],
  batched: boolean,
): Pieces<readonly (readonly Tensor[])[]> {
  if (!batched || sizes.length === 1) {
    const items = sizes.reduce((sum, size) => sum + size, 0)
    if (batched) for (const output of outputs) checkItems(output, items)
    return [
      outputs.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, data, movable: true })),
    ]
  }
  const shares: (readonly Tensor[])[] = []
  for (const output of outputs) shares.push(yield* sharesOf(output, sizes))
  return sizes.map((_, index) => shares.map((tensors) => tensors[index]!))
}

function* sharesOf(output: OnnxJobOutput, sizes: readonly number[]): Pieces<readonly Tensor[]> {
  const { name, datatype, shape, data } = output
  const items = sizes.reduce((sum, size) => sum + size, 0)
  checkItems(output, items)
  const elements = elementCount(shape.slice(1))
  const offsets = datatype === 'BYTES' ? yield* itemOffsets(data, elements) : undefined
  const offset = (item: number) =>
    offsets === undefined ? item * elements * elementBytes(datatype) : (offsets[item] ?? 0)
  let item = 0
  return sizes.map((size) => {
    const share = data.subarray(offset(item), offset(item + size))
    item += size
    return { name, datatype, shape: [size, ...shape.slice(1)], data: share }
  })
}

function checkItems({ name, shape }: OnnxJobOutput, items: number): void {
  if (shape[0] === items) return
  const problem = `failed to split the output tensor '${name}' in responses: expected batch size of ${items} in model output, got ${shape[0] ?? 'no dimension'}`
  throw new ServingError('INTERNAL', problem, 'BACKEND', new TensorShapeError(problem))
}
