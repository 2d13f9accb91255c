/** Bytes of a file at whose begin the shape of its pixels stands, if it does. */
const mostHeadBytes = 65_536

/**
 * How wide the pixels of a JPEG or PNG are for their height, as its file says: as ffmpeg writes and reads it, `16:11` for wide ones.
 * Dots for an inch or a metre are about paper: nothing shows a picture squeezed for them.
 *
 * @param image - whatever it is. Borrowed for the call.
 * @returns `undefined` where it says nothing.
 * @see ITU-T T.871, 10.1 (JFIF, units 0); PNG 11.3.4.3 (pHYs, unit 0)
 */
export function stillAspect(image: Uint8Array): number | undefined {
  const head = Buffer.from(image.buffer, image.byteOffset, Math.min(image.byteLength, mostHeadBytes))
  const place = head.readUInt16BE(0) === 0xffd8 ? jfifPlace(head) : pngPlace(head)
  if (place === undefined) return undefined
  const [width, height] = place
  return width > 0 && height > 0 ? width / height : undefined
}

type Ratio = readonly [width: number, height: number]

/** Of the APP0 segments at the begin of a JPEG. */
function jfifPlace(head: Buffer): Ratio | undefined {
  let at = 2
  while (at + 16 <= head.length && head[at] === 0xff) {
    const marker = head[at + 1] ?? 0
    const isSegment = marker >= 0xe0 && marker <= 0xfe
    if (!isSegment) return undefined
    if (marker === 0xe0 && head.toString('latin1', at + 4, at + 9) === 'JFIF\0')
      return head[at + 11] === 0 ? [head.readUInt16BE(at + 12), head.readUInt16BE(at + 14)] : undefined
    at += 2 + head.readUInt16BE(at + 2)
  }
  return undefined
}

/** Of the chunks before the pixels of a PNG. */
function pngPlace(head: Buffer): Ratio | undefined {
  let at = 8
  while (at + 17 <= head.length) {
    const kind = head.toString('latin1', at + 4, at + 8)
    if (kind === 'IDAT') return undefined
    if (kind === 'pHYs')
      return head[at + 16] === 0 ? [head.readUInt32BE(at + 8), head.readUInt32BE(at + 12)] : undefined
    at += 12 + head.readUInt32BE(at)
  }
  return undefined
}
