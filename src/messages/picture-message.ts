import type { PictureHeader } from './stream-protocol.js'

/** Binary message of a picture: uint32 big-endian length of the JSON header, the header in UTF-8, the JPEG. */
export function pictureMessage(header: PictureHeader, jpeg: Uint8Array): Buffer {
  const json = JSON.stringify(header)
  const jsonBytes = Buffer.byteLength(json)
  const message = Buffer.allocUnsafe(4 + jsonBytes + jpeg.length)
  message.writeUInt32BE(jsonBytes)
  message.write(json, 4)
  message.set(jpeg, 4 + jsonBytes)
  return message
}
