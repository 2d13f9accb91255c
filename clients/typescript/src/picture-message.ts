import type { PictureHeader, PictureMessage } from './messages.js'

/**
 * Takes a binary message of the stream apart: uint32 big-endian length, JSON, JPEG. The JPEG is a view, nothing is copied.
 *
 * @returns `undefined` for bytes that are no picture message.
 */
export function parsePictureMessage(data: ArrayBuffer): PictureMessage | undefined {
  if (data.byteLength < 4) return undefined
  const jsonBytes = new DataView(data).getUint32(0)
  if (data.byteLength < 4 + jsonBytes) return undefined
  const header = parseHeader(new TextDecoder().decode(new Uint8Array(data, 4, jsonBytes)))
  return header && { type: 'picture', header, jpeg: new Uint8Array(data, 4 + jsonBytes) }
}

function parseHeader(json: string): PictureHeader | undefined {
  try {
    const header = JSON.parse(json) as PictureHeader
    return header.type === 'picture' ? header : undefined
  } catch {
    return undefined
  }
}
