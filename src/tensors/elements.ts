import { uint32At } from './tensor-check.js'
import type { Datatype } from './datatype.js'

/** Types whose elements JavaScript can name. FP16 and BF16 travel as bytes only. */
export type NumberDatatype = Exclude<Datatype, 'FP16' | 'BF16' | 'BYTES'>

type NumberArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array

const arrays = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP32: Float32Array,
  FP64: Float64Array,
} satisfies Record<NumberDatatype, unknown>

/** Elements of little-endian bytes: a view where they are aligned, else of a copy. Bytes past the last whole element are left out. */
export function elementsOf(datatype: NumberDatatype, data: Uint8Array): NumberArray {
  const kind = arrays[datatype]
  const length = Math.floor(data.byteLength / kind.BYTES_PER_ELEMENT)
  const aligned = data.byteOffset % kind.BYTES_PER_ELEMENT === 0 ? data : new Uint8Array(data)
  return new kind(aligned.buffer as ArrayBuffer, aligned.byteOffset, length)
}

export function isNumberDatatype(datatype: Datatype): datatype is NumberDatatype {
  return datatype in arrays
}

/** The elements of BYTES, as views. Ends where a length does not fit any more. */
export function* stringsOf(data: Uint8Array): Generator<Uint8Array> {
  let at = 0
  while (at + 4 <= data.byteLength) {
    const end = at + 4 + uint32At(data, at)
    if (end > data.byteLength) return
    yield data.subarray(at + 4, end)
    at = end
  }
}

/** Elements as BYTES: each after its length. */
export function packStrings(elements: readonly Uint8Array[]): Uint8Array {
  const packed = Buffer.allocUnsafe(elements.reduce((bytes, element) => bytes + 4 + element.byteLength, 0))
  let at = 0
  for (const element of elements) {
    at = packed.writeUInt32LE(element.byteLength, at)
    packed.set(element, at)
    at += element.byteLength
  }
  return packed
}
