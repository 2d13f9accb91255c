/** A field of bytes in protobuf's wire format. */
export function protoField(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content as string)
  return Buffer.concat([protoVarint(number * 8 + 2), protoVarint(bytes.byteLength), bytes])
}

export function protoVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}
