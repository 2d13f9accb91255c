import type { Datatype } from '../../tensors/element-type.js'
import { ServingError } from '../../tensors/serving-error.js'
import { GrowingBytes } from '../../serving/growing-bytes.js'
import { ProtoReader } from './proto-reader.js'

/** Fields of `InferTensorContents`: which datatypes each may carry, and how an element is kept in it. */
const fields: Readonly<Record<number, Readonly<{ datatypes: readonly Datatype[]; wire: 0 | 1 | 2 | 5 }>>> = {
  1: { datatypes: ['BOOL'], wire: 0 },
  2: { datatypes: ['INT8', 'INT16', 'INT32'], wire: 0 },
  3: { datatypes: ['INT64'], wire: 0 },
  4: { datatypes: ['UINT8', 'UINT16', 'UINT32'], wire: 0 },
  5: { datatypes: ['UINT64'], wire: 0 },
  6: { datatypes: ['FP32'], wire: 5 },
  7: { datatypes: ['FP64'], wire: 1 },
  8: { datatypes: ['BYTES'], wire: 2 },
}

const varintBytes: Readonly<Partial<Record<Datatype, 1 | 2 | 4 | 8>>> = {
  BOOL: 1,
  INT8: 1,
  UINT8: 1,
  INT16: 2,
  UINT16: 2,
  INT32: 4,
  UINT32: 4,
  INT64: 8,
  UINT64: 8,
}

/**
 * The bytes of a tensor from an encoded `InferTensorContents`. Packed floats are a view of it.
 *
 * @throws ServingError `INVALID_ARG` for values in a field of another datatype; ProtoError
 */
export function bytesOfContents(
  contents: Buffer,
  input: string,
  model: string,
  datatype: Datatype,
): Uint8Array {
  const reader = new ProtoReader(contents)
  const joined = new GrowingBytes()
  let only: Uint8Array | undefined
  let chunks = 0
  while (reader.next()) {
    const field = fields[reader.field]
    if (field === undefined) {
      reader.skip()
      continue
    }
    if (!field.datatypes.includes(datatype))
      throw otherDatatype(input, model, field.datatypes[0] ?? 'BYTES', datatype)
    if (field.wire === 2) {
      const end = reader.lengthEnd()
      joined.appendUint32(end - reader.at)
      joined.appendPart(contents, reader.at, end)
      reader.at = end
      continue
    }
    const chunk = field.wire === 0 ? varints(reader, varintBytes[datatype] ?? 4) : fixed(reader, field.wire)
    if (++chunks === 1) only = chunk
    else {
      if (only !== undefined) joined.append(only)
      only = undefined
      joined.append(chunk)
    }
  }
  return only ?? joined.bytes
}

/** Packed or one element alone. */
function fixed(reader: ProtoReader, wire: 1 | 5): Uint8Array {
  if (reader.wire === 2) return reader.view()
  reader.expect(wire)
  const at = reader.take(wire === 1 ? 8 : 4)
  return reader.bytes.subarray(at, reader.at)
}

function varints(reader: ProtoReader, bytes: 1 | 2 | 4 | 8): Uint8Array {
  if (reader.wire !== 2) {
    reader.expect(0)
    const one = Buffer.alloc(8)
    store(reader, one, 0)
    return one.subarray(0, bytes)
  }
  const end = reader.lengthEnd()
  const packed = Buffer.alloc((end - reader.at) * bytes + 8)
  let at = 0
  while (reader.at < end) {
    store(reader, packed, at)
    at += bytes
  }
  return packed.subarray(0, at)
}

/** Little-endian in 8 bytes; the next element is written over those that are too many. */
function store(reader: ProtoReader, into: Buffer, at: number): void {
  reader.varint()
  into.writeUInt32LE(reader.low, at)
  into.writeUInt32LE(reader.high, at + 4)
}

function otherDatatype(input: string, model: string, given: Datatype, expected: Datatype): ServingError {
  return new ServingError(
    'INVALID_ARG',
    `unexpected explicit tensor data for input tensor '${input}' for model '${model}' of type '${given}', ` +
      `expected datatype '${expected}'`,
  )
}
