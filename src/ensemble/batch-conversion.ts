import type { Tensor, TensorSpec } from '../tensors/tensor.js'

/** A tensor between two steps, and whether the one that gave it has a batch dimension. */
export type StepTensor = Readonly<{ tensor: Tensor; batched: boolean }>

/** Who reads a tensor: -1 fits any size; the first size is the batch where there is one. */
export type BatchReader = Readonly<{ spec: TensorSpec | undefined; batched: boolean }>

/**
 * A tensor as its reader takes it, where only one of giver and reader has a batch dimension: a reader with one gets a batch of one of what
 * fits without it, and one without loses that of a batch of one that does not fit with it. All others are passed on as they are.
 *
 * @see triton-inference-server/core, src/ensemble_scheduler/ensemble_scheduler.cc, EnsembleContext::ReshapeTensorDims
 */
export function converted({ tensor, batched }: StepTensor, reader: BatchReader): Tensor {
  if (reader.spec === undefined || batched === reader.batched) return tensor
  const { shape } = tensor
  const dims = itemShape(reader.spec.shape, reader.batched)
  if (reader.batched) return sizesFit(dims, shape) ? { ...tensor, shape: [1, ...shape] } : tensor
  return sizesFit(dims, shape) || shape[0] !== 1 ? tensor : { ...tensor, shape: shape.slice(1) }
}

/** @param shape - with the batch first if `batched`. @returns that of one item */
export function itemShape(shape: readonly number[], batched: boolean): readonly number[] {
  return batched ? shape.slice(1) : shape
}

/** Whether two shapes may be the same: -1 is any size, on either side. */
export function sizesFit(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === -1 || b[axis] === -1 || size === b[axis])
}
