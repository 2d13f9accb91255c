import { createHash, type Hash } from 'node:crypto'
import { atOnce, inTurns, type Pieces } from '../../lifecycle/in-turns.js'
import type { InferRequest } from '../../runtime/infer.js'
import type { Tensor } from '../../tensors/tensor.js'

/** Differs whenever what the key is made of does. */
const form = 'gantry-response-1'
/** Takes a millisecond at most. */
const pieceBytes = 256 * 1024

/**
 * Name of all requests that have the same answer: model, version, inputs by name, outputs that are asked for, in their order.
 *
 * @param generation - of the model's file and configuration, so that a changed model does not answer for the one before.
 */
export async function requestKey(
  model: string,
  version: string,
  generation: string,
  request: InferRequest,
): Promise<string> {
  const inputs = [...request.inputs].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  const head = [
    form,
    model,
    version,
    generation,
    request.outputs.map(({ name }) => name),
    inputs.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.byteLength]),
    Object.entries(request.parameters).sort(([a], [b]) => (a < b ? -1 : 1)),
    ...(request.mayLack === true ? ['mayLack'] : []),
  ]
  const hash = createHash('sha256').update(
    JSON.stringify(head, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)),
  )
  const bytes = inputs.reduce((sum, { data }) => sum + data.byteLength, 0)
  const adding = addTo(hash, inputs)
  if (bytes > pieceBytes) await inTurns(adding)
  else atOnce(adding)
  return hash.digest('base64url')
}

function* addTo(hash: Hash, inputs: readonly Tensor[]): Pieces<void> {
  for (const { data } of inputs)
    for (let at = 0; at < data.byteLength; at += pieceBytes) {
      hash.update(data.subarray(at, at + pieceBytes))
      yield
    }
}
