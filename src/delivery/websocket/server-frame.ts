const finalFrame = 0x80
const opcodes = { text: 0x1, binary: 0x2 } as const

/**
 * A whole message as a server writes it to the connection: RFC 6455 section 5.2, one final frame, no mask. There is nothing of its
 * reader in it, so a message to a thousand is framed once. (`ws` frames so too, within a class that is no part of its documented API.)
 *
 * @param parts - the message, in pieces.
 */
export function serverFrame(kind: keyof typeof opcodes, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const headerBytes = length < 126 ? 2 : length < 0x1_0000 ? 4 : 10
  const frame = Buffer.allocUnsafe(headerBytes + length)
  frame[0] = finalFrame | opcodes[kind]
  if (headerBytes === 2) frame[1] = length
  else if (headerBytes === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  let at = headerBytes
  for (const part of parts) {
    frame.set(part, at)
    at += part.length
  }
  return frame
}
