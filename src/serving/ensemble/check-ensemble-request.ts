import type { InferRequest } from '../infer.js'
import { ServingError } from '../serving-error.js'
import type { TensorSpec } from '../tensor.js'

/** Outputs that a request wants, and its batch size. @throws ServingError `INVALID_ARG` naming the tensor */
export function checkEnsembleRequest(
  model: string,
  request: InferRequest,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  maxBatchSize: number,
): Readonly<{ outputs: readonly string[]; batchSize: number }> {
  const refuse = (problem: string): never => {
    throw new ServingError('INVALID_ARG', problem)
  }
  for (const tensor of request.inputs) {
    const spec = inputs.find(({ name }) => name === tensor.name)
    if (spec === undefined) return refuse(`unexpected inference input '${tensor.name}' for model '${model}'`)
    if (spec.datatype !== tensor.datatype)
      refuse(
        `inference input '${tensor.name}' data-type is '${tensor.datatype}', but model '${model}' expects '${spec.datatype}'`,
      )
    if (!fits(spec.shape, tensor.shape))
      refuse(
        `unexpected shape for input '${tensor.name}' for model '${model}'. Expected [${spec.shape.join(',')}], got [${tensor.shape.join(',')}]`,
      )
  }
  const missing = inputs.find(
    (spec) => spec.optional !== true && !request.inputs.some(({ name }) => name === spec.name),
  )
  if (missing !== undefined)
    refuse(
      `expected ${inputs.length} inputs but got ${request.inputs.length} inputs for model '${model}': '${missing.name}' is missing`,
    )
  const unknown = request.outputs.find(({ name }) => !outputs.some((spec) => spec.name === name))
  if (unknown !== undefined) refuse(`unexpected inference output '${unknown.name}' for model '${model}'`)
  const batchSize = maxBatchSize > 0 ? (request.inputs[0]?.shape[0] ?? 1) : 1
  if (maxBatchSize > 0 && batchSize > maxBatchSize)
    refuse(`inference request batch-size must be <= ${maxBatchSize} for '${model}'`)
  const wanted = request.outputs.length > 0 ? request.outputs : outputs
  return { outputs: wanted.map(({ name }) => name), batchSize }
}

function fits(spec: readonly number[], shape: readonly number[]): boolean {
  return spec.length === shape.length && spec.every((size, axis) => size === -1 || size === shape[axis])
}
