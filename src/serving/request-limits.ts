import { ServingError } from '../tensors/serving-error.js'

/**
 * Most of each that a request may have, over HTTP and gRPC. Each takes two bytes of a message and a hundred of memory or more, so the
 * limit on bytes alone would let one message take the whole heap.
 */
export const requestLimits = {
  inputs: 4_096,
  outputs: 4_096,
  /** Of the request, and of each input and output. */
  parameters: 1_024,
  /** Sizes of a shape. */
  dims: 256,
} as const

/** @throws ServingError `INVALID_ARG` when there are more `of` them than a request may have */
export function checkCount(of: keyof typeof requestLimits, count: number): void {
  if (count <= requestLimits[of]) return
  throw new ServingError('INVALID_ARG', `request has more than ${requestLimits[of]} ${nameOf[of]}`)
}

const nameOf: Readonly<Record<keyof typeof requestLimits, string>> = {
  inputs: 'inputs',
  outputs: 'outputs',
  parameters: 'parameters in one place',
  dims: 'dimensions in a shape',
}
