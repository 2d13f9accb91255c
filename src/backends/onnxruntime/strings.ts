import { isAscii, isUtf8 } from 'node:buffer'
import { atOnce, type Pieces } from '../../lifecycle/in-turns.js'
import { uint32At } from '../../tensors/elements.js'

/** Elements of BYTES, whose form has been checked, as places in `data`. */
function* places(data: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  for (let at = 0; at + 4 <= data.byteLength;) {
    const end = at + 4 + view.getUint32(at, true)
    yield data.subarray(at + 4, end)
    at = end
  }
}

/** So much is looked at in one piece. */
const pieceBytes = 16 * 1024

/** What of a string the binding cannot pass on: it takes texts, and ends them at a NUL (onnxruntime#2284). */
export type StringFault = 'is not UTF-8' | 'has a NUL, where ONNX Runtime would cut it'

/** What is wrong with the first element of BYTES that has a fault. */
export function* stringFault(data: Uint8Array): Pieces<StringFault | undefined> {
  for (let at = 0; at < data.byteLength;) {
    const end = pieceEnd(data, at)
    const piece = data.subarray(at, end)
    if (hasNul(piece)) return 'has a NUL, where ONNX Runtime would cut it'
    // The lengths before short elements are ASCII too.
    if (!isAscii(piece)) for (const element of places(piece)) if (!isUtf8(element)) return 'is not UTF-8'
    at = end
    yield
  }
  return undefined
}

function hasNul(data: Uint8Array): boolean {
  for (let at = 0; at + 4 <= data.byteLength;) {
    const end = at + 4 + uint32At(data, at)
    // Where an element has none, the next one is soon found: in the length behind it.
    const nul = data.indexOf(0, at + 4)
    if (nul >= 0 && nul < end) return true
    at = end
  }
  return false
}

/** Where the last element ends that lies in the piece, or the first one. */
function pieceEnd(data: Uint8Array, start: number): number {
  const most = Math.min(data.byteLength, start + pieceBytes)
  let at = start + 4 + uint32At(data, start)
  while (at + 4 <= most) {
    const end = at + 4 + uint32At(data, at)
    if (end > most) break
    at = end
  }
  return at
}

export function decodeStrings(data: Uint8Array): string[] {
  return Array.from(places(data), (element) =>
    Buffer.from(element.buffer, element.byteOffset, element.byteLength).toString('utf8'),
  )
}

/** Each element as a little-endian uint32 length and its UTF-8 bytes. */
export function encodeStrings(values: readonly string[]): Uint8Array<ArrayBuffer> {
  const lengths = values.map((value) => Buffer.byteLength(value))
  const data = Buffer.from(new ArrayBuffer(lengths.reduce((sum, length) => sum + 4 + length, 0)))
  let at = 0
  values.forEach((value, index) => {
    at = data.writeUInt32LE(lengths[index]!, at)
    at += data.write(value, at)
  })
  return data
}

/** Where each element begins, and the end of the last. */
export function stringOffsets(data: Uint8Array): number[] {
  return atOnce(itemOffsets(data, 1))
}

/** Where each `elements` elements begin, and the end of the last: 0 alone for none. */
export function* itemOffsets(data: Uint8Array, elements: number): Pieces<number[]> {
  const offsets = [0]
  let found = 0
  for (let at = 0; at + 4 <= data.byteLength;) {
    at += 4 + uint32At(data, at)
    if (++found % elements === 0) offsets.push(at)
    if (found % pieceBytes === 0) yield
  }
  return offsets
}
