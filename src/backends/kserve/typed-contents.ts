import protobuf from 'protobufjs'
import type { Datatype } from '../../tensors/element-type.js'

type Kind = Readonly<
  /** Number of the list in the message. */
  { field: number } & (
    | { wire: 0; bytes: 1 | 2 | 4 | 8; store: keyof typeof stores }
    /** Floats: as they are in the tensor. */
    | { wire: 1 | 5; bytes: 4 | 8 }
    /** BYTES. */
    | { wire: 2 }
  )
>

function whole(field: number, bytes: 1 | 2 | 4 | 8): Kind {
  return { field, wire: 0, bytes, store: bytes }
}

/** Where `InferTensorContents` has the elements of a datatype. FP16 and BF16 have raw contents only. */
const kinds: Readonly<Partial<Record<Datatype, Kind>>> = {
  BOOL: { field: 1, wire: 0, bytes: 1, store: 'truth' },
  INT8: whole(2, 1),
  INT16: whole(2, 2),
  INT32: whole(2, 4),
  INT64: whole(3, 8),
  UINT8: whole(4, 1),
  UINT16: whole(4, 2),
  UINT32: whole(4, 4),
  UINT64: whole(5, 8),
  FP32: { field: 6, wire: 5, bytes: 4 },
  FP64: { field: 7, wire: 1, bytes: 8 },
  BYTES: { field: 8, wire: 2 },
}

/** Whether a message can list elements of that type. */
export function canBeListed(datatype: Datatype): boolean {
  return datatype in kinds
}

/**
 * The bytes of a tensor whose elements an encoded `InferTensorContents` lists. No object is made for an element; a list of floats in one
 * piece is a view of the message.
 *
 * @param room - is told how many bytes the tensor has before they are there, and throws if that is too much.
 * @throws RangeError for bytes that are no such message
 */
export function listedBytes(contents: Buffer, datatype: Datatype, room: (bytes: number) => void): Uint8Array {
  const kind = kinds[datatype]
  if (kind === undefined) throw new RangeError(`no list has elements of type ${datatype}`)
  let bytes = 0
  let lists = 0
  let only: Uint8Array | undefined
  eachList(contents, kind, (reader, end) => {
    lists += 1
    only = lists === 1 && kind.wire !== 0 && kind.wire !== 2 ? contents.subarray(reader.pos, end) : undefined
    bytes += bytesOf(reader, end, kind)
  })
  room(bytes)
  if (only !== undefined) return only
  const tensor = Buffer.from(new ArrayBuffer(bytes))
  let at = 0
  eachList(contents, kind, (reader, end) => (at = copyList(reader, end, kind, tensor, at)))
  return tensor
}

/** Calls with the reader at each list, or element that stands alone, of that kind; `read` leaves it at the end. */
function eachList(
  contents: Buffer,
  { field, wire }: Kind,
  read: (reader: protobuf.Reader, end: number) => void,
): void {
  const reader = protobuf.Reader.create(contents)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    if (tag >>> 3 !== field) {
      reader.skipType(tag & 7)
      continue
    }
    const end = endOf(reader, tag & 7, wire)
    if (end > reader.len) throw new RangeError('message ends within a list')
    read(reader, end)
    if (reader.pos !== end) throw new RangeError('list ends within an element')
  }
}

function endOf(reader: protobuf.Reader, given: number, wire: Kind['wire']): number {
  // Numbers may be packed; texts are not.
  if (given === 2) return reader.uint32() + reader.pos
  if (given !== wire) throw new RangeError(`elements have wire type ${given}, expected ${wire}`)
  if (wire !== 0) return reader.pos + (wire === 1 ? 8 : 4)
  const start = reader.pos
  const end = reader.skip().pos
  reader.pos = start
  return end
}

/** Bytes that a list takes in the tensor. Leaves the reader at its end. */
function bytesOf(reader: protobuf.Reader, end: number, kind: Kind): number {
  const listed = end - reader.pos
  if (kind.wire === 0) {
    let elements = 0
    for (; reader.pos < end; elements++) reader.skip()
    return elements * kind.bytes
  }
  if (kind.wire !== 2 && listed % kind.bytes !== 0) throw new RangeError('list ends within an element')
  reader.pos = end
  return kind.wire === 2 ? 4 + listed : listed
}

/** @returns where the next list begins in the tensor */
function copyList(reader: protobuf.Reader, end: number, kind: Kind, tensor: Buffer, start: number): number {
  let at = start
  if (kind.wire === 0) {
    const store = stores[kind.store]
    for (; reader.pos < end; at += kind.bytes) store(tensor, at, reader)
    return at
  }
  if (kind.wire === 2) at = tensor.writeUInt32LE(end - reader.pos, at)
  const { buf } = reader
  // To set up a copy takes longer than to copy a few bytes.
  if (end - reader.pos < 32) for (let from = reader.pos; from < end; from++) tensor[at++] = buf[from]!
  else {
    tensor.set(buf.subarray(reader.pos, end), at)
    at += end - reader.pos
  }
  reader.pos = end
  return at
}

type Store = (tensor: Buffer, at: number, reader: protobuf.Reader) => void

/** A number as it is kept in so many bytes, little-endian; what does not fit is cut off. */
const stores = {
  truth: (tensor, at, reader) => (tensor[at] = reader.bool() ? 1 : 0),
  1: (tensor, at, reader) => (tensor[at] = reader.int32()),
  2: (tensor, at, reader) => tensor.writeUInt16LE(reader.int32() & 0xffff, at),
  4: (tensor, at, reader) => tensor.writeInt32LE(reader.int32(), at),
  8: (tensor, at, reader) => {
    const { low, high } = reader.int64()
    tensor.writeInt32LE(low, at)
    tensor.writeInt32LE(high, at + 4)
  },
} satisfies Record<string, Store>
