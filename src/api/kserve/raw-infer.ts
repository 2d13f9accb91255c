import type { ModelServer } from '../../serving/model-server.js'
import { elementBytes } from '../../tensors/element-type.js'
import { movableTensors } from '../../tensors/tensor-buffers.js'
import { packStrings } from '../../tensors/elements.js'
import { checkedTensor, idPrefix } from '../../tensors/tensor-check.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { ParsedInfer } from './infer-body.js'

/**
 * A body that is nothing but the data of the only input of a model: batch 1, and one size that is open follows from the length.
 *
 * @throws ServingError
 */
export async function rawInfer(
  server: ModelServer,
  body: Uint8Array,
  model: string,
  version: string,
): Promise<ParsedInfer> {
  await server.ask(model)
  const { inputs } = server.metadata(model, version)
  const [input] = inputs
  if (input === undefined || inputs.length !== 1)
    throw refused(
      `Raw request must only have 1 input (found 1) to be deduced but got ${inputs.length} inputs in '${model}' model configuration`,
    )
  const tensor = checkedTensor(rawTensor(input, isBatched(server, model, version), body), model, '')
  return {
    request: {
      model,
      version,
      id: '',
      inputs: movableTensors([tensor], body),
      outputs: [],
      priority: 0,
      timeoutUs: 0,
      sequence: undefined,
      parameters: {},
    },
    forms: { byName: new Map(), otherwise: true },
  }
}

function isBatched(server: ModelServer, model: string, version: string): boolean {
  return (server.config(model, version).max_batch_size ?? 0) > 0
}

function rawTensor({ name, datatype, shape }: TensorSpec, batched: boolean, body: Uint8Array): Tensor {
  const sizes = batched ? [1, ...shape.slice(1)] : [...shape]
  const open = sizes.indexOf(-1)
  if (open !== sizes.lastIndexOf(-1))
    throw refused(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    )
  const known = sizes.reduce((product, size) => (size === -1 ? product : product * size), 1)
  if (datatype === 'BYTES') {
    if (open !== -1 || known !== 1)
      throw refused(`For BYTE datatype raw input '${name}', the model must have input shape [1]`)
    return { name, datatype, shape: sizes, data: packStrings([body]) }
  }
  if (open !== -1) sizes[open] = Math.floor(body.byteLength / known / elementBytes(datatype))
  return { name, datatype, shape: sizes, data: body }
}

function refused(message: string): ServingError {
  return new ServingError('INVALID_ARG', idPrefix('') + message)
}
