import sharp from 'sharp'

/** A picture of one colour. */
export function plainPicture(
  background: string,
  format: 'jpeg' | 'png' | 'webp' | 'gif' = 'jpeg',
  size: Readonly<{ width: number; height: number }> = { width: 64, height: 48 },
): Promise<Buffer> {
  return sharp({ create: { ...size, channels: 3, background } })
    .toFormat(format, { optimiseCoding: false })
    .toBuffer()
}

/** A JPEG with another one inside of its EXIF, as cameras carry thumbnails. */
export function withThumbnail(jpeg: Buffer, thumbnail: Buffer): Buffer {
  const exif = Buffer.concat([Buffer.from('Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0', 'latin1'), thumbnail])
  const length = Buffer.alloc(2)
  length.writeUInt16BE(exif.length + 2)
  return Buffer.concat([jpeg.subarray(0, 2), Buffer.from([0xff, 0xe1]), length, exif, jpeg.subarray(2)])
}

/** A JPEG without its Huffman tables, as in AVI: those of the standard are meant. */
export function withoutTables(jpeg: Buffer): Buffer {
  const parts = [jpeg.subarray(0, 2)]
  for (let at = 2; ;) {
    const code = jpeg[at + 1] ?? 0
    if (code === 0xda) return Buffer.concat([...parts, jpeg.subarray(at)])
    const next = at + 2 + jpeg.readUInt16BE(at + 2)
    if (code !== 0xc4) parts.push(jpeg.subarray(at, next))
    at = next
  }
}

const named = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255], white: [255, 255, 255] } as const

/** Which of red, lime, blue and white is in the midst of a square frame; `other` where it is none of them. */
export function colourOf(rgbHwc: Uint8Array | null): string {
  if (rgbHwc === null) return 'none'
  const side = Math.sqrt(rgbHwc.length / 3)
  const at = (Math.floor(side / 2) * side + Math.floor(side / 2)) * 3
  const found = Object.entries(named).find(([, colour]) =>
    colour.every((value, channel) => Math.abs(value - (rgbHwc[at + channel] ?? 0)) < 60),
  )
  return found?.[0] ?? 'other'
}
