/** Pictures that cameras send over HTTP, and that are decoded. */
export type PictureKind = 'jpeg' | 'png' | 'webp'

/** Where a picture ends, as far as its bytes have come. */
export type PictureEnd =
  | Readonly<{ kind: 'more' }>
  /** The first byte behind it. */
  | Readonly<{ kind: 'end'; at: number }>
  /** It is damaged: here stands what cannot be part of it, such as the begin of the next one. */
  | Readonly<{ kind: 'broken'; at: number }>

const more: PictureEnd = { kind: 'more' }
const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const startOfJpeg = Buffer.from([0xff, 0xd8, 0xff])
/** As long as a beginning must be to be known. */
export const pictureStartBytes = 12

/** What kind of picture begins with these bytes; undefined where none does. */
export function pictureKindOf(bytes: Buffer, at = 0): PictureKind | undefined {
  const start = bytes.subarray(at, at + pictureStartBytes)
  if (start.subarray(0, 3).equals(startOfJpeg)) return 'jpeg'
  if (start.subarray(0, 8).equals(pngSignature)) return 'png'
  return /^RIFF[^]{4}WEBP/.test(start.toString('latin1')) ? 'webp' : undefined
}

/** Whether they may be the begin of a picture, of which too little has come to say; JPEGs are found anywhere. */
export function mayBeginPicture(bytes: Buffer): boolean {
  const text = bytes.toString('latin1', 0, pictureStartBytes)
  return (
    (bytes.length < pngSignature.length && text !== '' && pngSignature.toString('latin1').startsWith(text)) ||
    (bytes.length < pictureStartBytes && 'RIFF'.startsWith(text.slice(0, 4)) && text !== '')
  )
}

const starts: Readonly<Record<PictureKind, Buffer>> = {
  jpeg: startOfJpeg,
  png: pngSignature,
  webp: Buffer.from('RIFF', 'latin1'),
}

/** Where the next picture of a kind begins; -1 where none does. */
export function nextStart(kind: PictureKind, bytes: Buffer, from: number): number {
  return bytes.indexOf(starts[kind], from)
}

/** Finds the end of one picture while its bytes come; what was read is not read again. */
export type EndFinder = Readonly<{
  /** @param bytes - from the beginning of the picture on, at least as many as the time before. */
  find(bytes: Buffer): PictureEnd
}>

export function endFinder(kind: PictureKind): EndFinder {
  switch (kind) {
    case 'jpeg':
      return new JpegEnd()
    case 'png':
      return new PngEnd()
    case 'webp':
      return { find: webpEnd }
    default:
      return kind satisfies never
  }
}

/** Markers without a length. */
const isBare = (code: number) => code === 0x00 || code === 0x01 || (code >= 0xd0 && code <= 0xd7)
/** Markers that may stand behind coded data: tables and scans of progressive pictures, comments. */
const mayFollowScan = (code: number) =>
  code === 0xc4 || (code >= 0xda && code <= 0xdd) || code === 0xfe || (code >= 0xe0 && code <= 0xef)

/**
 * Walks from marker to marker (ITU T.81 B.1.1): a picture inside of another, as cameras put thumbnails into EXIF, is part of a segment
 * with a length and is passed over.
 */
class JpegEnd implements EndFinder {
  #at = 2
  #inScan = false
  /** Where the coded data was left. */
  #leftScanAt = 0

  find(bytes: Buffer): PictureEnd {
    for (;;) {
      const found = this.#inScan ? this.#inData(bytes) : this.#atMarker(bytes)
      if (found !== undefined) return found
    }
  }

  #inData(bytes: Buffer): PictureEnd | undefined {
    const at = bytes.indexOf(0xff, this.#at)
    this.#at = at < 0 ? bytes.length : at
    const code = bytes[this.#at + 1]
    if (at < 0 || code === undefined) return more
    if (code === 0xd9) return { kind: 'end', at: at + 2 }
    if (code === 0xd8) {
      const next = bytes[at + 2]
      if (next === undefined) return more
      if (next === 0xff) return { kind: 'broken', at }
    }
    if (mayFollowScan(code)) {
      this.#inScan = false
      this.#leftScanAt = at
    } else this.#at = code === 0xff ? at + 1 : at + 2
    return undefined
  }

  #atMarker(bytes: Buffer): PictureEnd | undefined {
    const code = bytes[this.#at + 1]
    if (code === undefined) return more
    if (bytes[this.#at] !== 0xff || code === 0xd8) return this.#notMarker()
    if (code === 0xd9) return { kind: 'end', at: this.#at + 2 }
    if (code === 0xff || isBare(code)) {
      this.#at += code === 0xff ? 1 : 2
      return undefined
    }
    if (bytes.length < this.#at + 4) return more
    const length = bytes.readUInt16BE(this.#at + 2)
    if (length < 2) return this.#notMarker()
    const next = this.#at + 2 + length
    if (bytes.length < next) return more
    this.#at = next
    this.#inScan = code === 0xda
    return undefined
  }

  /** In coded data that is damaged anything may look like a marker. */
  #notMarker(): PictureEnd | undefined {
    if (this.#leftScanAt === 0) return { kind: 'broken', at: this.#at }
    this.#at = this.#leftScanAt + 2
    this.#leftScanAt = 0
    this.#inScan = true
    return undefined
  }
}

class PngEnd implements EndFinder {
  #at = pngSignature.length

  find(bytes: Buffer): PictureEnd {
    for (;;) {
      if (bytes.length < this.#at + 8) return more
      const name = bytes.toString('latin1', this.#at + 4, this.#at + 8)
      if (!/^[A-Za-z]{4}$/.test(name)) return { kind: 'broken', at: this.#at }
      const next = this.#at + 12 + bytes.readUInt32BE(this.#at)
      if (bytes.length < next) return more
      if (name === 'IEND') return { kind: 'end', at: next }
      this.#at = next
    }
  }
}

function webpEnd(bytes: Buffer): PictureEnd {
  if (bytes.length < pictureStartBytes) return more
  const length = bytes.readUInt32LE(4)
  const end = 8 + length + (length % 2)
  return bytes.length < end ? more : { kind: 'end', at: end }
}
