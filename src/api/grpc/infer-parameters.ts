import type { ParameterValue, SequencePosition, SharedPlace } from '../../runtime/infer.js'
import { ServingError } from '../../tensors/serving-error.js'

/** Which member of the oneof was set, with its value. */
export type Parameter = Readonly<{
  kind: 'bool' | 'int64' | 'string' | 'double' | 'uint64'
  value: ParameterValue
}>
export type Parameters = Map<string, Parameter>

type ReadParameters = Readonly<{
  priority: number
  timeoutUs: number
  sequence: SequencePosition | undefined
  custom: Readonly<Record<string, ParameterValue>>
}>

const noParameters: ReadParameters = { priority: 0, timeoutUs: 0, sequence: undefined, custom: {} }

/** What the request itself says, and what it says for the model. @throws ServingError */
export function readParameters(parameters: Parameters): ReadParameters {
  if (parameters.size === 0) return noParameters
  const custom: Record<string, ParameterValue> = {}
  for (const [name, { value }] of parameters) {
    if (reserved.has(name)) continue
    if (name.startsWith('triton_'))
      throw clientFault(
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with " +
          "'triton_' are allowed: triton_enable_empty_final_response",
      )
    custom[name] = value
  }
  return {
    priority: sizeOf(parameters, 'priority', ['int64', 'uint64'], 'int64_param or uint64_param'),
    timeoutUs: sizeOf(parameters, 'timeout', ['int64'], 'int64_param'),
    sequence: readSequence(parameters),
    custom,
  }
}

const reserved = new Set([
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'priority',
  'timeout',
  'triton_enable_empty_final_response',
])

function sizeOf(
  parameters: Parameters,
  name: string,
  kinds: readonly Parameter['kind'][],
  expected: string,
): number {
  const parameter = parameters.get(name)
  if (parameter === undefined) return 0
  if (!kinds.includes(parameter.kind))
    throw clientFault(`invalid value type for '${name}' parameter, expected ${expected}.`)
  const value = Number(parameter.value)
  if (value < 0) throw clientFault(`invalid value for '${name}', expected value >= 0.`)
  return value
}

/** Id 0 and an empty id are no sequence, as in Triton. */
function readSequence(parameters: Parameters): SequencePosition | undefined {
  const start = flagOf(parameters, 'sequence_start')
  const end = flagOf(parameters, 'sequence_end')
  const id = parameters.get('sequence_id')
  if (id === undefined || id.value === 0 || id.value === '') return undefined
  if (id.kind !== 'int64' && id.kind !== 'string')
    throw clientFault("invalid value type for 'sequence_id' parameter, expected int64_param or string_param.")
  const text = typeof id.value === 'string' ? id.value : String(BigInt.asUintN(64, BigInt(id.value)))
  return { id: text, start, end }
}

function flagOf(parameters: Parameters, name: string): boolean {
  const parameter = parameters.get(name)
  if (parameter === undefined) return false
  if (parameter.kind !== 'bool')
    throw clientFault(`invalid value type for '${name}' parameter, expected bool_param.`)
  return parameter.value === true
}

/** Where a tensor lies; `undefined` where it is not in shared memory. */
export function sharedPlace({
  name,
  parameters,
}: Readonly<{ name: string; parameters: Parameters }>): SharedPlace | undefined {
  const region = parameters.get('shared_memory_region')
  const number = (key: string): number | undefined => {
    const parameter = parameters.get(key)
    if (parameter === undefined) return undefined
    if (region === undefined)
      throw clientFault(
        `'${key}' can not be specified without 'shared_memory_region' parameter for tensor '${name}'`,
      )
    if (parameter.kind !== 'int64')
      throw clientFault(
        `invalid value type for '${key}' parameter for tensor '${name}', expected int64_param.`,
      )
    return Number(parameter.value)
  }
  const [offset, bytes] = [number('shared_memory_offset'), number('shared_memory_byte_size')]
  if (region === undefined) return undefined
  if (region.kind !== 'string')
    throw clientFault(
      `invalid value type for 'shared_memory_region' parameter for tensor '${name}', expected string_param.`,
    )
  if (bytes === undefined)
    throw clientFault(
      `'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '${name}'`,
    )
  return { region: String(region.value), offset: offset ?? 0, bytes }
}

/** What the client has done wrong. */
export function clientFault(message: string): ServingError {
  return new ServingError('INVALID_ARG', message)
}
