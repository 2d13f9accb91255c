import type { Picture } from '../stream-hub.js'

/** Binary message of a picture: uint32 big-endian length of the JSON header, the header in UTF-8, the JPEG. */
export function encodePicture(picture: Picture): Buffer {
  const header = Buffer.from(JSON.stringify(picture.header))
  const message = Buffer.allocUnsafe(4 + header.length + picture.jpeg.length)
  message.writeUInt32BE(header.length, 0)
  header.copy(message, 4)
  message.set(picture.jpeg, 4 + header.length)
  return message
}
