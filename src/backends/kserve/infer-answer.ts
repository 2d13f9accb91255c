import protobuf from 'protobufjs'
import { type Datatype, elementBytes } from '../../tensors/element-type.js'
import { uint32At } from '../../tensors/elements.js'
import type { Tensor } from '../../tensors/tensor.js'
import { ServingError } from '../../tensors/serving-error.js'
import { tooLargeError } from './kserve-errors.js'
import { datatypeNamed } from './kserve-messages.js'
import type { KserveSettings } from './kserve-settings.js'
import { canBeListed, listedBytes } from './typed-contents.js'

/** Each becomes an object; no model has so many. */
const most = { outputs: 4_096, dimensions: 256 }

/**
 * The outputs of a `ModelInferResponse` that are wanted. Raw contents, and lists of floats, are views of the message. A general decoder would
 * make an object of each element.
 *
 * @throws ServingError for outputs that are too large, or no tensors; RangeError for bytes that are no such message
 */
export function readAnswer(
  message: Buffer,
  wanted: readonly string[],
  settings: Pick<KserveSettings, 'name' | 'model' | 'maxResponseBytes'>,
): readonly Tensor[] {
  const { outputs, raw } = parts(message)
  const left = new Set(wanted)
  let total = 0
  const room = (bytes: number): void => {
    total += bytes
    if (total > settings.maxResponseBytes) throw tooLargeError(settings, total)
  }
  return outputs.flatMap((bytes, index) => {
    const output = outputOf(bytes)
    if (!left.delete(output.name)) return []
    return tensorOf(output, raw[index], room)
  })
}

type Output = { name: string; datatype: string; shape: readonly number[]; contents: Buffer }

function parts(message: Buffer): Readonly<{ outputs: readonly Buffer[]; raw: readonly Buffer[] }> {
  const outputs: Buffer[] = []
  const raw: Buffer[] = []
  const reader = protobuf.Reader.create(message)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    const list = tag === fields.outputs ? outputs : tag === fields.raw ? raw : undefined
    if (list === undefined) reader.skipType(tag & 7)
    else if (list.length >= most.outputs) throw wrong(`the answer has more than ${most.outputs} outputs`)
    else list.push(reader.bytes() as Buffer)
  }
  return { outputs, raw }
}

/** Number and wire type of fields that are read, all with a length. */
const fields = { outputs: 5 * 8 + 2, raw: 6 * 8 + 2 }
const outputFields = { name: 1, datatype: 2, shape: 3, contents: 5 }

function outputOf(bytes: Buffer): Output {
  const output: Output = { name: '', datatype: '', shape: [], contents: Buffer.alloc(0) }
  const reader = protobuf.Reader.create(bytes)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    const wire = tag & 7
    switch (tag >>> 3) {
      case outputFields.name:
        output.name = reader.string()
        break
      case outputFields.datatype:
        output.datatype = reader.string()
        break
      case outputFields.shape:
        output.shape = [...output.shape, ...sizes(reader, wire)]
        if (output.shape.length > most.dimensions)
          throw wrong(`the answer has an output of more than ${most.dimensions} dimensions`)
        break
      case outputFields.contents:
        output.contents = reader.bytes() as Buffer
        break
      default:
        reader.skipType(wire)
    }
  }
  return output
}

/** Packed, or one alone. */
function sizes(reader: protobuf.Reader, wire: number): readonly number[] {
  if (wire === 0) return [size(reader)]
  const end = reader.uint32() + reader.pos
  const list: number[] = []
  while (reader.pos < end && list.length <= most.dimensions) list.push(size(reader))
  return list
}

/** Not exact past 2^53, which no shape is. */
function size(reader: protobuf.Reader): number {
  const { low, high } = reader.int64()
  return high * 2 ** 32 + (low >>> 0)
}

function tensorOf(
  { name, datatype: called, shape, contents }: Output,
  raw: Buffer | undefined,
  room: (bytes: number) => void,
): Tensor {
  const datatype = datatypeNamed(called)
  if (datatype === undefined) throw wrong(`remote output '${name}' has datatype '${called}'`)
  if (raw === undefined && !canBeListed(datatype))
    throw wrong(`a remote output of datatype '${datatype}' has no raw contents`)
  const data = raw ?? listedBytes(contents, datatype, room)
  if (raw !== undefined) room(raw.byteLength)
  const elements = shape.reduce((product, size) => product * (size < 0 ? NaN : size), 1)
  if (!isFilled(data, datatype, elements))
    throw wrong(
      `remote output '${name}' has ${data.byteLength} bytes, which are no ${datatype} [${shape.join(',')}]`,
    )
  return { name, datatype, shape, data, ...(datatype === 'BYTES' ? { checked: true } : {}) }
}

function isFilled(data: Uint8Array, datatype: Datatype, elements: number): boolean {
  if (datatype !== 'BYTES') return data.byteLength === elements * elementBytes(datatype)
  let found = 0
  let at = 0
  for (; at + 4 <= data.byteLength; found++) at += 4 + uint32At(data, at)
  return at === data.byteLength && found === elements
}

function wrong(problem: string): ServingError {
  return new ServingError('INTERNAL', problem, 'BACKEND')
}
