import { type Datatype, datatypes } from '../../tensors/element-type.js'
import { countCopy, movableTensors } from '../../tensors/tensor-buffers.js'
import { checkedTensor } from '../../tensors/tensor-check.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { RequestedOutput, SentRequest, SharedPlace } from '../../runtime/infer.js'
import { checkCount } from '../../serving/request-limits.js'
import { ServingError } from '../../tensors/serving-error.js'
import { mostHere, TooLongHereError } from '../codec/here-or-elsewhere.js'
import { GrowingBytes } from '../../serving/growing-bytes.js'
import { ProtoReader } from './proto-reader.js'
import {
  clientFault,
  type Parameter,
  type Parameters,
  readParameters,
  sharedPlace,
} from './infer-parameters.js'
import { bytesOfContents } from './typed-contents.js'

type InputMessage = Readonly<{
  name: string
  datatype: string
  shape: readonly number[]
  parameters: Parameters
  /** Encoded. */
  contents: Buffer | undefined
}>

type OutputMessage = Readonly<{ name: string; parameters: Parameters }>

/** `ModelInferRequest` with its fields as they were sent. */
export type InferRequestMessage = Readonly<{
  model: string
  version: string
  id: string
  parameters: Parameters
  inputs: readonly InputMessage[]
  outputs: readonly OutputMessage[]
  rawInputs: readonly Buffer[]
  /** What the views lie in. */
  bytes: Buffer
  /** Why nothing else of it was read: it is wrong, or its reading would hold the loop. */
  refused?: ServingError | TooLongHereError
}>

/**
 * Raw inputs are views of `bytes`, into which the transport has joined its frames: that copy of theirs is counted here.
 *
 * @throws ProtoError
 */
export function decodeInferRequest(bytes: Buffer): InferRequestMessage {
  try {
    return readInferRequest(bytes, mostHere.fields)
  } catch (error) {
    // What the transport throws away here would be INTERNAL, and no fault of the client.
    if (error instanceof ServingError || error instanceof TooLongHereError)
      return { ...noRequest, bytes, refused: error }
    throw error
  }
}

/** However long that takes. @throws ProtoError, ServingError */
export function decodeWhole(bytes: Buffer): InferRequestMessage {
  return readInferRequest(bytes, Infinity)
}

function readInferRequest(bytes: Buffer, mostFields: number): InferRequestMessage {
  const reader = new ProtoReader(bytes, 0, bytes.byteLength, mostFields)
  let model = ''
  let version = ''
  let id = ''
  const parameters: Parameters = new Map()
  const inputs: InputMessage[] = []
  const outputs: OutputMessage[] = []
  const rawInputs: Buffer[] = []
  while (reader.next()) {
    if (reader.field === 7) checkCount('inputs', rawInputs.push(rawInput(reader)))
    else if (reader.field === 5) checkCount('inputs', inputs.push(readInput(reader)))
    else if (reader.field === 6) checkCount('outputs', outputs.push(readOutput(reader)))
    else if (reader.field === 1) model = reader.text()
    else if (reader.field === 2) version = reader.text()
    else if (reader.field === 3) id = reader.text()
    else if (reader.field === 4) readParameter(reader, parameters)
    else reader.skip()
  }
  return { model, version, id, parameters, inputs, outputs, rawInputs, bytes }
}

const noRequest: Omit<InferRequestMessage, 'bytes'> = {
  model: '',
  version: '',
  id: '',
  parameters: new Map(),
  inputs: [],
  outputs: [],
  rawInputs: [],
}

function rawInput(reader: ProtoReader): Buffer {
  const data = reader.view()
  countCopy(data.byteLength)
  return data
}

function readInput(reader: ProtoReader): InputMessage {
  let name = ''
  let datatype = ''
  let contents: GrowingBytes | Buffer | undefined
  const shape: number[] = []
  const parameters: Parameters = new Map()
  reader.message((input) => {
    while (input.next()) {
      if (input.field === 1) name = input.text()
      else if (input.field === 2) datatype = input.text()
      else if (input.field === 3) readSizes(input, shape)
      else if (input.field === 4) readParameter(input, parameters)
      else if (input.field === 5)
        contents = contents === undefined ? input.view() : appended(contents, input.view())
      else input.skip()
    }
  })
  return {
    name,
    datatype,
    shape,
    parameters,
    contents: contents instanceof GrowingBytes ? contents.bytes : contents,
  }
}

/** Two messages of one field are one, by the rules of protobuf. */
function appended(contents: GrowingBytes | Buffer, more: Buffer): GrowingBytes {
  const joined = contents instanceof GrowingBytes ? contents : new GrowingBytes()
  if (contents !== joined) joined.append(contents as Buffer)
  joined.append(more)
  return joined
}

/** Packed or one alone. */
function readSizes(reader: ProtoReader, shape: number[]): void {
  if (reader.wire === 0) {
    checkCount('dims', shape.push(reader.int64()))
    return
  }
  const end = reader.lengthEnd()
  while (reader.at < end) {
    reader.varint()
    checkCount('dims', shape.push((reader.high | 0) * 4_294_967_296 + reader.low))
  }
}

function readOutput(reader: ProtoReader): OutputMessage {
  let name = ''
  const parameters: Parameters = new Map()
  reader.message((output) => {
    while (output.next()) {
      if (output.field === 1) name = output.text()
      else if (output.field === 2) readParameter(output, parameters)
      else output.skip()
    }
  })
  return { name, parameters }
}

function readParameter(reader: ProtoReader, parameters: Parameters): void {
  let key = ''
  let parameter: Parameter | undefined
  reader.message((entry) => {
    while (entry.next()) {
      if (entry.field === 1) key = entry.text()
      else if (entry.field === 2)
        entry.message((value) => {
          while (value.next()) parameter = readChoice(value) ?? parameter
        })
      else entry.skip()
    }
  })
  parameters.set(key, parameter ?? { kind: 'string', value: '' })
  checkCount('parameters', parameters.size)
}

function readChoice(value: ProtoReader): Parameter | undefined {
  if (value.field === 1) return { kind: 'bool', value: value.boolean() }
  if (value.field === 2) return { kind: 'int64', value: exact(value.int64(), value, true) }
  if (value.field === 3) return { kind: 'string', value: value.text() }
  if (value.field === 4) return { kind: 'double', value: value.double() }
  if (value.field === 5) return { kind: 'uint64', value: exact(value.uint64(), value, false) }
  value.skip()
  return undefined
}

/** The number as it was sent, as bigint where a number cannot hold it. */
function exact(rounded: number, { low, high }: ProtoReader, signed: boolean): number | bigint {
  if (Number.isSafeInteger(rounded)) return rounded
  const whole = (BigInt(high) << 32n) | BigInt(low)
  return signed ? BigInt.asIntN(64, whole) : whole
}

/** Whether to read its tensors would hold the loop. */
export function isLongHere({ inputs, rawInputs }: InferRequestMessage): boolean {
  let bytes = 0
  let elements = 0
  let raw = 0
  for (const { contents, datatype, shape, parameters } of inputs) {
    if (parameters.has('shared_memory_region')) continue
    const rawBytes = rawInputs[raw++]?.byteLength ?? 0
    bytes += contents?.byteLength ?? 0
    // They are looked at one by one, those that the shape has and those that are there.
    if (datatype === 'BYTES')
      elements += Math.min(Math.abs(shape.reduce((product, size) => product * size, 1)), rawBytes / 4)
  }
  return bytes > mostHere.bytes || elements > mostHere.elements
}

/**
 * The request as the model server takes it, its tensors checked. Nobody reads the message after this, as a large tensor may be
 * moved.
 *
 * @throws ServingError in the words of Triton
 */
export function sentRequestOf(message: InferRequestMessage): SentRequest {
  if (message.refused !== undefined) throw message.refused
  const { inputs, sharedInputs } = readTensors(message)
  const outputs = message.outputs.map(requestedOutput)
  const { priority, timeoutUs, sequence, custom } = readParameters(message.parameters)
  return {
    model: message.model,
    version: versionOf(message.version),
    id: message.id,
    inputs,
    ...(sharedInputs.size === 0 ? {} : { sharedInputs }),
    outputs,
    priority,
    timeoutUs,
    sequence,
    parameters: custom,
  }
}

/** @throws ServingError `INVALID_ARG` for versions that are no number */
export function versionOf(version: string): string {
  if (/^\d*$/.test(version)) return version
  throw new ServingError(
    'INVALID_ARG',
    `failed to get model version from specified version string '${version}' (details: stoll), ` +
      'version should be an integral value > 0',
  )
}

type ReadInputs = Readonly<{ inputs: readonly Tensor[]; sharedInputs: ReadonlyMap<number, SharedPlace> }>

/** Inputs in shared memory have no part in `raw_input_contents`. */
function readTensors(message: InferRequestMessage): ReadInputs {
  const { inputs, rawInputs, model } = message
  const isRaw = rawInputs.length > 0
  const sharedInputs = new Map<number, SharedPlace>()
  let raw = 0
  const tensors = inputs.map((input, index) => {
    const place = sharedPlace(input)
    if (place !== undefined) {
      if (input.contents !== undefined)
        throw clientFault(
          `unexpected 'content' provided when using shared memory for input tensor '${input.name}' for model '${model}'`,
        )
      sharedInputs.set(index, place)
      return { name: input.name, datatype: datatypeOf(input), shape: input.shape, data: new Uint8Array(0) }
    }
    if (isRaw && input.contents !== undefined)
      throw clientFault(
        `contents field must not be specified when using raw_input_contents for '${input.name}' for model '${model}'`,
      )
    const data = isRaw ? rawInputs[raw++] : typedContents(input, model)
    if (data === undefined)
      throw clientFault(
        `unable to find data for input tensor '${input.name}' for model '${model}' in request.`,
      )
    const tensor = { name: input.name, datatype: datatypeOf(input), shape: input.shape, data }
    return checkedTensor(tensor, model, message.id)
  })
  if (isRaw && rawInputs.length !== raw)
    throw clientFault(
      `expected raw_input_contents for ${raw} inputs but got ${rawInputs.length} for model '${model}'`,
    )
  return { inputs: movableTensors(tensors, message.bytes), sharedInputs }
}

function typedContents(input: InputMessage, model: string): Uint8Array | undefined {
  if (input.contents !== undefined)
    return bytesOfContents(input.contents, input.name, model, datatypeOf(input))
  return input.shape.includes(0) ? new Uint8Array(0) : undefined
}

function datatypeOf({ datatype, name }: InputMessage): Datatype {
  const known = datatypes.find((one) => one === datatype)
  if (known !== undefined) return known
  throw clientFault(`invalid datatype '${datatype}' for input '${name}'`)
}

function requestedOutput(output: OutputMessage): RequestedOutput {
  const { name, parameters } = output
  const place = sharedPlace(output)
  const classes = parameters.get('classification')
  if (classes !== undefined && place !== undefined)
    throw clientFault("output can't set both 'shared_memory_region' and 'classification'")
  if (classes === undefined) return { name, classification: 0, ...(place === undefined ? {} : { place }) }
  if (classes.kind !== 'int64')
    throw clientFault("invalid value type for 'classification' parameter, expected int64_param")
  if (!Number.isSafeInteger(classes.value) || Number(classes.value) <= 0)
    throw clientFault("invalid value for 'classification' parameter, expected >= 0")
  return { name, classification: Number(classes.value) }
}
