import { isUtf8 } from 'node:buffer'

/** Elements of BYTES, whose form has been checked, as places in `data`. */
function* places(data: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  for (let at = 0; at + 4 <= data.byteLength;) {
    const end = at + 4 + view.getUint32(at, true)
    yield data.subarray(at + 4, end)
    at = end
  }
}

/** Whether every element is UTF-8: ONNX Runtime's strings are passed as text. */
export function isUtf8Tensor(data: Uint8Array): boolean {
  for (const element of places(data)) if (!isUtf8(element)) return false
  return true
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
  const offsets = [0]
  for (const element of places(data)) offsets.push(offsets.at(-1)! + 4 + element.byteLength)
  return offsets
}
