import type { Picture } from './stream-hub.js'
import { serverFrame } from './server-frame.js'

/** Binary message of a picture, ready for the wire: uint32 big-endian length of the JSON header, the header in UTF-8, the JPEG. */
export function pictureMessage({ header, jpeg }: Picture): Buffer {
  const headerJson = Buffer.from(JSON.stringify(header))
  const headerBytes = Buffer.allocUnsafe(4)
  headerBytes.writeUInt32BE(headerJson.length, 0)
  return serverFrame('binary', headerBytes, headerJson, jpeg)
}
