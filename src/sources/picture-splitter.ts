import {
  endFinder,
  mayBeginPicture,
  nextStart,
  pictureKindOf,
  pictureStartBytes,
  type EndFinder,
  type PictureEnd,
  type PictureKind,
} from './picture-end.js'

/** A picture of 8192 x 8192 pixels has some 10 MB as JPEG. */
export const mostPictureMiB = 16
const mostBytes = mostPictureMiB * 1024 * 1024
/** Longest line between two pictures; of longer ones the beginning is forgotten. */
const mostLineBytes = 8 * 1024
/** What a part that is no picture may say of its length; more is not believed. */
const mostPassedBytes = 1024 * 1024
/** Shorter ones may stand in a picture by chance. */
const leastDelimiterBytes = 6
const firstBytes = 256 * 1024
const ofPictures = /image|jpe?g|octet-stream/i

export type SplitPicture = Readonly<{
  kind: PictureKind
  /** Borrowed for the call. */
  bytes: Buffer
  /** Its end is missing. */
  isCut: boolean
}>

/** A picture is larger than any that is read. */
export class PictureTooLargeError extends Error {
  constructor() {
    super(`a picture is larger than ${mostPictureMiB} MiB, the most that is read`)
    this.name = 'PictureTooLargeError'
  }
}

/** What the lines before a picture, or before something else, say of it. */
type Part = { type?: string; lengthBytes?: number }

/** A picture that has begun. */
type Inside = {
  kind: PictureKind
  finder: EndFinder
  /** Up to here there is no boundary. */
  searched: number
  /** Where it is found to be damaged; 0 while it is not. */
  brokenAt: number
}

/**
 * Takes the pictures out of what a camera sends over HTTP, each as soon as its last byte has come. Only the pictures themselves are
 * trusted: where they begin and end they say in their own bytes. What stands between them (boundaries and heads of `multipart`, in
 * whatever form, padding, parts that hold something else) is passed over, and so a length that is wrong or missing does no harm.
 *
 * Holds one picture at most.
 */
export class PictureSplitter {
  #buffer = Buffer.allocUnsafe(firstBytes)
  /** What of the buffer is in use. */
  #from = 0
  #to = 0
  #part: Part = {}
  #delimiter: Buffer | undefined
  #inside: Inside | undefined
  /** Bytes of another part that are still to come. */
  #toPass = 0
  /** In a part that is no picture. */
  #isForeign = false
  #foreign = { parts: 0, type: '' }
  #pictures = 0

  /** @param contentType - of the answer; its boundary may be missing, or another than the one in the body. */
  constructor(
    readonly picture: (picture: SplitPicture) => void,
    contentType = '',
  ) {
    const [, quoted, plain] = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(contentType) ?? []
    const boundary = (quoted ?? plain ?? '').replace(/^--/, '')
    if (boundary !== '') this.#learn(`--${boundary}`)
  }

  /** Pictures so far, and one that has begun. */
  get begun(): number {
    return this.#pictures + (this.#inside === undefined ? 0 : 1)
  }

  /** Parts so far that were something else, and what the last one said it was. */
  get foreign(): Readonly<{ parts: number; type: string }> {
    return this.#foreign
  }

  /** @throws PictureTooLargeError */
  write(chunk: Buffer): void {
    this.#append(chunk)
    while (this.#step()) {
      // Each step takes something away.
    }
    if (this.#to - this.#from > mostBytes) throw new PictureTooLargeError()
  }

  /** Nothing more will come: of a picture whose end is missing there is what came. */
  end(): void {
    if (this.#inside !== undefined) this.#give(this.#to - this.#from, true)
  }

  #append(chunk: Buffer): void {
    const held = this.#to - this.#from
    if (this.#to + chunk.length > this.#buffer.length) {
      const wanted = held + chunk.length
      const target =
        wanted > this.#buffer.length / 2 ? Buffer.allocUnsafe(Math.max(2 * wanted, firstBytes)) : this.#buffer
      this.#buffer.copy(target, 0, this.#from, this.#to)
      this.#buffer = target
      this.#from = 0
      this.#to = held
    }
    chunk.copy(this.#buffer, this.#to)
    this.#to += chunk.length
  }

  /** @returns whether there may be more to do with what has come. */
  #step(): boolean {
    if (this.#inside !== undefined) return this.#inPicture(this.#inside)
    return this.#toPass > 0 ? this.#pass() : this.#between()
  }

  #pass(): boolean {
    const bytes = Math.min(this.#toPass, this.#to - this.#from)
    this.#from += bytes
    this.#toPass -= bytes
    return bytes > 0
  }

  /** Lines, until a picture begins. */
  #between(): boolean {
    const held = this.#buffer.subarray(this.#from, this.#to)
    if (mayBeginPicture(held)) return false
    const lineEnd = held.indexOf(0x0a)
    const line = lineEnd < 0 ? held : held.subarray(0, lineEnd + 1)
    if (!this.#isForeign && this.#begins(held, line)) return true
    if (lineEnd >= 0) {
      this.#line(line.toString('latin1').trim())
      this.#from += line.length
      return true
    }
    if (held.length > mostLineBytes) this.#from = this.#to - pictureStartBytes
    return false
  }

  /** A JPEG may begin in the midst of a line, behind padding. */
  #begins(held: Buffer, line: Buffer): boolean {
    const start = Math.max(0, nextStart('jpeg', line, 0))
    const kind = pictureKindOf(held, start)
    if (kind === undefined) return false
    this.#from += start
    this.#inside = { kind, finder: endFinder(kind), searched: 0, brokenAt: 0 }
    return true
  }

  #line(line: string): void {
    if (line.startsWith('--')) {
      this.#learn(line)
      this.#part = {}
      this.#isForeign = false
      return
    }
    if (line === '') return this.#headEnds()
    const [, name = '', value = ''] = /^([\w-]+)\s*:\s*(.*)$/.exec(line) ?? []
    if (/^content-length$/i.test(name) && /^\d+$/.test(value)) this.#part.lengthBytes = Number(value)
    if (!/^content-type$/i.test(name)) return
    this.#part.type = value
    if (ofPictures.test(value)) this.#isForeign = false
  }

  #headEnds(): void {
    const { type = '', lengthBytes = 0 } = this.#part
    if (this.#isForeign || type === '' || ofPictures.test(type)) return
    this.#isForeign = true
    this.#foreign = { parts: this.#foreign.parts + 1, type }
    if (lengthBytes <= mostPassedBytes) this.#toPass = lengthBytes
  }

  /** @param line - the first of a part; that behind the last one ends with two more dashes. */
  #learn(line: string): void {
    const delimiter = Buffer.from(`\n${line.replace(/(?<=[^-])--$/, '')}`, 'latin1')
    this.#delimiter = delimiter.length > leastDelimiterBytes ? delimiter : undefined
  }

  #inPicture(inside: Inside): boolean {
    const held = this.#buffer.subarray(this.#from, this.#to)
    const found = endOf(inside, held)
    const boundary = this.#delimiter === undefined ? -1 : held.indexOf(this.#delimiter, inside.searched)
    inside.searched = Math.max(0, held.length - (this.#delimiter?.length ?? 0))
    if (found.kind !== 'more' && (boundary < 0 || found.at <= boundary))
      return this.#give(found.at, found.kind === 'broken')
    return boundary >= 0 && this.#give(boundary, true)
  }

  #give(lengthBytes: number, isCut: boolean): true {
    const { kind } = this.#inside as Inside
    const bytes = this.#buffer.subarray(this.#from, this.#from + lengthBytes)
    this.#inside = undefined
    this.#part = {}
    this.#pictures += 1
    this.#from += lengthBytes
    this.picture({ kind, bytes, isCut })
    return true
  }
}

/** Where a picture is broken nobody knows its end: it lasts until the next one begins. */
function endOf(inside: Inside, held: Buffer): PictureEnd {
  const found = inside.brokenAt > 0 ? undefined : inside.finder.find(held)
  if (found !== undefined && found.kind !== 'broken') return found
  inside.brokenAt = found?.at ?? inside.brokenAt
  const at = nextStart(inside.kind, held, inside.brokenAt)
  return at < 0 ? { kind: 'more' } : { kind: 'broken', at }
}
