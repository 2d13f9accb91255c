import type { PictureHeader } from '../api/types.js'

export type PictureMessage = Readonly<{ header: PictureHeader; jpeg: Blob }>

/**
 * Takes a binary message of the stream apart: uint32 big-endian length, JSON, JPEG.
 *
 * @returns `undefined` for bytes that are no picture message.
 */
export function parsePictureMessage(data: ArrayBuffer): PictureMessage | undefined {
  if (data.byteLength < 4) return undefined
  const jsonBytes = new DataView(data).getUint32(0)
  if (data.byteLength < 4 + jsonBytes) return undefined
  const header = parseHeader(new TextDecoder().decode(new Uint8Array(data, 4, jsonBytes)))
  return header && { header, jpeg: new Blob([new Uint8Array(data, 4 + jsonBytes)], { type: 'image/jpeg' }) }
}

function parseHeader(json: string): PictureHeader | undefined {
  try {
    const header = JSON.parse(json) as PictureHeader
    return header.type === 'picture' ? header : undefined
  } catch {
    return undefined
  }
}
