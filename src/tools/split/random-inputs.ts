import ort from '../../backends/onnxruntime/onnxruntime.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { describeTensor, elementCount, type ModelTensor } from '../../tensors/tensor.js'

/** Free sizes other than the batch; pictures of detectors are at least this large. */
const usualFreeSize = 64

/**
 * Tensors for the inputs of a model, the same for the same seed: floats in 0..1, bytes, small whole numbers.
 *
 * @param freeSize - of sizes that the model leaves open, other than the batch.
 * @throws ModelInvalidError for types that nobody can guess values of.
 */
export function randomInputs(
  inputs: readonly ModelTensor[],
  batchSize: number,
  seed: number,
  freeSize = usualFreeSize,
): Record<string, ort.Tensor> {
  const next = generator(seed)
  return Object.fromEntries(
    inputs.map((input) => [input.name, randomTensor(input, batchSize, freeSize, next)]),
  )
}

function randomTensor(
  input: ModelTensor,
  batchSize: number,
  freeSize: number,
  next: () => number,
): ort.Tensor {
  const dims = input.shape.map((size, axis) =>
    typeof size === 'number' ? size : axis === 0 ? batchSize : freeSize,
  )
  const length = elementCount(dims)
  switch (input.type) {
    case 'float32':
      return new ort.Tensor('float32', Float32Array.from({ length }, next), dims)
    case 'float64':
      return new ort.Tensor('float64', Float64Array.from({ length }, next), dims)
    case 'uint8':
      return new ort.Tensor(
        'uint8',
        Uint8Array.from({ length }, () => next() * 256),
        dims,
      )
    case 'int8':
      return new ort.Tensor(
        'int8',
        Int8Array.from({ length }, () => next() * 256 - 128),
        dims,
      )
    case 'int32':
      return new ort.Tensor(
        'int32',
        Int32Array.from({ length }, () => next() * 64),
        dims,
      )
    case 'int64':
      return new ort.Tensor(
        'int64',
        BigInt64Array.from({ length }, () => BigInt(Math.floor(next() * 64))),
        dims,
      )
    case 'bool':
      return new ort.Tensor(
        'bool',
        Uint8Array.from({ length }, () => (next() < 0.5 ? 0 : 1)),
        dims,
      )
    default:
      throw new ModelInvalidError(
        `input "${input.name}" is ${describeTensor(input)}`,
        'Models with inputs of this type cannot be split: there is no way to make one up for the comparison.',
      )
  }
}

/** Numbers in 0..1 by a linear congruential generator. */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
