import { type Datatype, datatypes } from '../../tensors/element-type.js'
import { movableTensors } from '../../tensors/tensor-buffers.js'
import { checkedCount, checkedTensor } from '../../tensors/tensor-check.js'
import type { Tensor } from '../../tensors/tensor.js'
import type {
  ParameterValue,
  RequestedOutput,
  SentRequest,
  SequencePosition,
  SharedPlace,
} from '../../runtime/infer.js'
import { checkCount, type requestLimits } from '../../serving/request-limits.js'
import { ServingError } from '../../tensors/serving-error.js'
import { TooLongHereError } from '../codec/here-or-elsewhere.js'
import { bytesOfJson } from './json-tensor.js'
import { asObject, member, parseInferJson, type JsonObject } from './json.js'
import { sharedPlaceOf } from './shared-memory-body.js'

/** Whether an output goes out in binary; by name, and for those the request does not name. */
export type OutputForms = Readonly<{ byName: ReadonlyMap<string, boolean>; otherwise: boolean }>

export type ParsedInfer = Readonly<{ request: SentRequest; forms: OutputForms }>

/**
 * Reads the body of an inference request: JSON of `headerBytes`, then the binary inputs in the order of the JSON.
 * Binary tensors are views of the body, and a large one may be movable: nobody reads the body after this.
 *
 * @param mostElements - of binary BYTES, all together.
 * @throws ServingError in the words of Triton; TooLongHereError for more than `mostElements`
 */
export function parseInferBody(
  body: Uint8Array,
  headerBytes: number,
  model: string,
  version: string,
  mostElements = Infinity,
): ParsedInfer {
  const json = asObject(parseInferJson(body.subarray(0, headerBytes)))
  const id = textMember(json, 'id', '')
  const parameters = readParameters(parametersOf(json))
  const reader = new InputReader(body.subarray(headerBytes), model, id, mostElements)
  const tensors = reader.read(listMember(json, 'inputs', 'inputs'))
  const requested =
    member(json, 'outputs') === undefined ? [] : listMember(json, 'outputs', 'outputs').map(readOutput)
  return {
    request: {
      model,
      version,
      id,
      inputs: movableTensors(tensors, body),
      ...(reader.shared.size === 0 ? {} : { sharedInputs: reader.shared }),
      outputs: requested.map(({ binary: _, ...output }) => output),
      priority: parameters.priority,
      timeoutUs: parameters.timeoutUs,
      sequence: parameters.sequence,
      parameters: parameters.custom,
    },
    forms: {
      byName: new Map(requested.map(({ name, binary }) => [name, binary ?? false])),
      otherwise: parameters.binaryDataOutput,
    },
  }
}

class InputReader {
  /** By number, inputs that lie in shared memory. */
  readonly shared = new Map<number, SharedPlace>()
  #at = 0
  #elements = 0

  constructor(
    readonly binary: Uint8Array,
    readonly model: string,
    readonly requestId: string,
    readonly mostElements: number,
  ) {}

  read(inputs: readonly unknown[]): Tensor[] {
    const tensors = inputs.map((input, index) => this.#tensor(asObject(input), index))
    if (this.#at !== this.binary.byteLength)
      throw new ServingError('INVALID_ARG', `unexpected additional input data for model '${this.model}'`)
    return tensors
  }

  #tensor(json: JsonObject | undefined, index: number): Tensor {
    const { binarySize, place } = contentOf(json)
    const name = textMember(json, 'name')
    const datatype = readDatatype(json, name)
    const shape = listMember(json, 'shape', 'dims').map((size) => readSize(size, "Unable to parse 'shape'"))
    if (place !== undefined) {
      this.shared.set(index, place)
      return { name, datatype, shape, data: new Uint8Array(0) }
    }
    const data =
      binarySize === undefined
        ? bytesOfJson(name, datatype, shape, member(json, 'data'))
        : this.#take(name, readSize(binarySize, "Unable to parse 'binary_data_size'"))
    if (datatype === 'BYTES' && binarySize !== undefined) this.#countElements(name, shape, data)
    return checkedTensor({ name, datatype, shape, data }, this.model, this.requestId)
  }

  /** They are looked at one by one, those that the shape has and those that are there. */
  #countElements(name: string, shape: readonly number[], data: Uint8Array): void {
    this.#elements += Math.min(checkedCount(name, shape), data.byteLength / 4)
    if (this.#elements > this.mostElements) throw new TooLongHereError()
  }

  #take(name: string, bytes: number): Uint8Array {
    const left = this.binary.byteLength - this.#at
    if (bytes > left)
      throw new ServingError(
        'INVALID_ARG',
        `unexpected size for input '${name}', expecting ${bytes - left} additional bytes for model '${this.model}'`,
      )
    this.#at += bytes
    return this.binary.subarray(this.#at - bytes, this.#at)
  }
}

type Content = Readonly<{ binarySize: unknown; place: SharedPlace | undefined }>

/** Where the data of an input are, unless it has `data`. Exactly one of the three must be there. */
function contentOf(json: JsonObject | undefined): Content {
  const parameters = parametersOf(json)
  const binarySize = member(parameters, 'binary_data_size')
  const inSharedMemory = member(parameters, 'shared_memory_region') !== undefined
  const given = [
    ...(member(json, 'data') === undefined ? [] : ["'data'"]),
    ...(binarySize === undefined ? [] : ["'binary_data_size'"]),
    ...(inSharedMemory ? ["'shared_memory_region'"] : []),
  ]
  if (given.length !== 1)
    throw new ServingError(
      'INVALID_ARG',
      "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
        "'shared_memory_region' in 'parameters'. But" +
        (given.length === 0 ? ' no field is set' : ` set ${given.join(' ')}`),
    )
  return { binarySize, place: sharedPlaceOf(parameters) }
}

function readDatatype(json: JsonObject | undefined, input: string): Datatype {
  const name = textMember(json, 'datatype')
  const datatype = datatypes.find((known) => known === name)
  if (datatype !== undefined) return datatype
  throw new ServingError('INVALID_ARG', `invalid datatype for input ${input}`)
}

type ReadOutput = RequestedOutput & Readonly<{ binary: boolean | undefined }>

function readOutput(value: unknown): ReadOutput {
  const json = asObject(value)
  const parameters = parametersOf(json)
  const place = sharedPlaceOf(parameters)
  const classes = member(parameters, 'classification')
  const binary = booleanMember(parameters, 'binary_data')
  if (place !== undefined && (classes !== undefined || binary === true))
    throw new ServingError(
      'INVALID_ARG',
      `Output can't set both 'shared_memory_region' and '${classes === undefined ? 'binary_data' : 'classification'}'`,
    )
  return {
    name: textMember(json, 'name'),
    classification: classes === undefined ? 0 : readSize(classes, "Unable to set 'classification'"),
    binary,
    ...(place === undefined ? {} : { place }),
  }
}

type ReadParameters = Readonly<{
  priority: number
  timeoutUs: number
  sequence: SequencePosition | undefined
  binaryDataOutput: boolean
  custom: Readonly<Record<string, ParameterValue>>
}>

function readParameters(json: JsonObject | undefined): ReadParameters {
  const custom: Record<string, ParameterValue> = {}
  for (const [name, value] of Object.entries(json ?? {})) {
    if (reserved.has(name)) continue
    if (name.startsWith('triton_'))
      throw new ServingError(
        'INVALID_ARG',
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      )
    custom[name] = customValue(name, value)
  }
  return {
    priority: sizeMember(json, 'priority'),
    timeoutUs: sizeMember(json, 'timeout'),
    sequence: readSequence(json),
    binaryDataOutput: booleanMember(json, 'binary_data_output') ?? false,
    custom,
  }
}

const reserved = new Set([
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'priority',
  'timeout',
  'binary_data_output',
])

function customValue(name: string, value: unknown): ParameterValue {
  if (
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean' ||
    typeof value === 'bigint'
  )
    return value
  throw new ServingError(
    'INVALID_ARG',
    `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
  )
}

/** Id 0 and an empty id are no sequence, as in Triton. */
function readSequence(json: JsonObject | undefined): SequencePosition | undefined {
  const start = booleanMember(json, 'sequence_start') ?? false
  const end = booleanMember(json, 'sequence_end') ?? false
  const id = member(json, 'sequence_id')
  if (id === undefined || id === 0 || id === '') return undefined
  return { id: sequenceId(id), start, end }
}

function sequenceId(id: unknown): string {
  if (typeof id === 'string') return id
  if (typeof id === 'number' && Number.isSafeInteger(id) && id > 0) return String(id)
  if (typeof id === 'bigint' && id > 0n && id < 2n ** 64n) return String(id)
  throw new ServingError(
    'INVALID_ARG',
    "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
  )
}

function readSize(value: unknown, problem: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new ServingError(
    'INVALID_ARG',
    `${problem}: attempt to access JSON non-unsigned-integer as unsigned-integer`,
  )
}

function sizeMember(json: JsonObject | undefined, name: string): number {
  const value = member(json, name)
  return value === undefined ? 0 : readSize(value, `Unable to parse '${name}'`)
}

function booleanMember(json: JsonObject | undefined, name: string): boolean | undefined {
  const value = member(json, name)
  if (value === undefined || typeof value === 'boolean') return value
  throw new ServingError(
    'INVALID_ARG',
    `Unable to parse '${name}': attempt to access JSON non-boolean as boolean`,
  )
}

function textMember(json: JsonObject | undefined, name: string, otherwise?: string): string {
  const value = member(json, name) ?? otherwise
  if (typeof value === 'string') return value
  const problem =
    value === undefined
      ? `attempt to access non-existing object member '${name}'`
      : 'attempt to access JSON non-string as string'
  throw new ServingError('INVALID_ARG', `Unable to parse '${name}': ${problem}`)
}

function arrayMember(json: JsonObject | undefined, name: string): readonly unknown[] {
  const value = member(json, name)
  if (Array.isArray(value)) return value as readonly unknown[]
  const problem =
    value === undefined
      ? `attempt to access non-existing object member '${name}'`
      : 'attempt to access JSON non-array as array'
  throw new ServingError('INVALID_ARG', `Unable to parse '${name}': ${problem}`)
}

/** An array with no more items than a request may have. */
function listMember(
  json: JsonObject | undefined,
  name: string,
  limit: keyof typeof requestLimits,
): readonly unknown[] {
  const list = arrayMember(json, name)
  checkCount(limit, list.length)
  return list
}

function parametersOf(json: JsonObject | undefined): JsonObject | undefined {
  const parameters = asObject(member(json, 'parameters'))
  if (parameters !== undefined) checkCount('parameters', Object.keys(parameters).length)
  return parameters
}
