/** Bytes as text, for messages between processes, which are JSON. */
export type Base64 = string

export function toBase64(bytes: Uint8Array): Base64 {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

export function fromBase64(text: Base64): Buffer {
  return Buffer.from(text, 'base64')
}
