import { createHash } from 'node:crypto'
import type { InferRequest } from '../infer.js'

/** Differs whenever what the key is made of does. */
const form = 'gantry-response-1'

/**
 * Name of all requests that have the same answer: model, version, inputs by name, outputs that are asked for, in their order.
 *
 * @param generation - of the model's file and configuration, so that a changed model does not answer for the one before.
 */
export function requestKey(
  model: string,
  version: string,
  generation: string,
  request: InferRequest,
): string {
  const inputs = [...request.inputs].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  const head = [
    form,
    model,
    version,
    generation,
    request.outputs.map(({ name }) => name),
    inputs.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.byteLength]),
    Object.entries(request.parameters).sort(([a], [b]) => (a < b ? -1 : 1)),
  ]
  const hash = createHash('sha256').update(
    JSON.stringify(head, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)),
  )
  for (const { data } of inputs) hash.update(data)
  return hash.digest('base64url')
}
