import { type ArrayDatatype, arrayOf, type Datatype, elementBytes } from './element-type.js'

/** Whether bytes at that place can be read as elements without a copy. */
export function isAligned(datatype: Datatype, { byteOffset }: Uint8Array): boolean {
  return byteOffset % Math.max(1, elementBytes(datatype)) === 0
}

/** Elements of little-endian bytes: a view where they are aligned, else of a copy. Bytes past the last whole element are left out. */
export function elementsOf(
  datatype: ArrayDatatype,
  data: Uint8Array,
): InstanceType<ReturnType<typeof arrayOf>> {
  const kind = arrayOf(datatype)
  const length = Math.floor(data.byteLength / kind.BYTES_PER_ELEMENT)
  const aligned = isAligned(datatype, data) ? data : new Uint8Array(data)
  return new kind(aligned.buffer as ArrayBuffer, aligned.byteOffset, length)
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

/** Little-endian, at any offset. */
export function uint32At(data: Uint8Array, at: number): number {
  return (
    ((data[at] ?? 0) |
      ((data[at + 1] ?? 0) << 8) |
      ((data[at + 2] ?? 0) << 16) |
      ((data[at + 3] ?? 0) << 24)) >>>
    0
  )
}

/** The bits of float16 numbers, over the same memory: outputs are `Float16Array` or `Uint16Array`, by the version of Node. */
export function float16Bits(data: ArrayBufferView): Uint16Array {
  return new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2)
}

const rounded = new Float32Array(1)
const roundedBits = new Uint32Array(rounded.buffer)

/** A number as IEEE 754 half precision, rounded to the nearest, of two to the even one. */
export function halfBits(value: number): number {
  rounded[0] = value
  const bits = roundedBits[0]!
  const sign = (bits >>> 16) & 0x8000
  const size = Math.abs(rounded[0])
  if (Number.isNaN(value)) return 0x7e00
  if (size >= 65_520) return sign | 0x7c00
  if (size < 2 ** -14) return sign | toEven(size * 2 ** 24)
  const exponent = ((bits >>> 23) & 0xff) - 127
  // The first bit of a normal number is not written; one that is rounded up carries into the exponent.
  return sign | (((exponent + 14) << 10) + toEven((size / 2 ** exponent) * 1024))
}

function toEven(value: number): number {
  const down = Math.floor(value)
  const rest = value - down
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down
}

/** IEEE 754 half precision to floats. */
export function floatsOf(bits: Uint16Array): Float32Array {
  return Float32Array.from(bits, (half) => {
    const sign = half & 0x8000 ? -1 : 1
    const exponent = (half >> 10) & 0x1f
    const fraction = half & 0x3ff
    if (exponent === 0) return sign * fraction * 2 ** -24
    if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : Number.NaN
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
  })
}
