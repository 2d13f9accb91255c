import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { headerBytesOf, isPage } from './page.js'
import { WriteAheadLog } from './write-ahead-log.js'

/** Where the number stands that says how large a page is: 1 means 65,536. */
const pageBytesAt = 16
const magic = 'SQLite format 3\0'
const sampledPages = 256
const pageCountAt = 28
const freePagesAt = 32
const pagesCutOff = 1_000_000

/** The pages of an SQLite file and of its log, read one by one and by nobody's rules: nothing in it need be right. */
export class DamagedFile {
  /** Frames of the log by page, newest last. */
  readonly #logged = new Map<number, number[]>()
  readonly #free = new Set<number>()
  readonly #filePages: number
  /** Number of the last page, also of one that is missing; the first one is 1. */
  readonly lastPage: number

  private constructor(
    readonly file: number,
    readonly log: number | undefined,
    readonly pageBytes: number,
    wal: WriteAheadLog | undefined,
  ) {
    this.#filePages = Math.floor(fstatSync(file).size / pageBytes)
    for (const { page, at } of wal?.frames ?? []) {
      const known = this.#logged.get(page)
      if (known === undefined) this.#logged.set(page, [at])
      else known.push(at)
    }
    let last = this.#filePages
    for (const page of this.#logged.keys()) last = Math.max(last, page)
    const first = this.newest(1)
    const isReadable = first !== undefined && isPage(first, headerBytesOf(1))
    const told = isReadable ? first.readUInt32BE(pageCountAt) : 0
    // What is cut off the end is believed to have been there as long as the number is one of a file of results.
    this.lastPage = told < 2 * last + pagesCutOff ? Math.max(last, told) : last
    if (isReadable) this.#findFree(first)
  }

  /** @param usualPageBytes - of files whose size nothing tells. @throws what the system throws where the file cannot be read at all */
  static open(path: string, usualPageBytes: number): DamagedFile {
    const wal = WriteAheadLog.read(`${path}-wal`)
    // Where it is missing there may be its log.
    const file = openSync(path, 'a+')
    const log = wal && existsSync(`${path}-wal`) ? openSync(`${path}-wal`, 'r') : undefined
    return new DamagedFile(file, log, wal?.pageBytes ?? pageBytesOf(file, usualPageBytes), wal)
  }

  close(): void {
    closeSync(this.file)
    if (this.log !== undefined) closeSync(this.log)
  }

  /** Whether the file says that nothing is in it any more. */
  isFree(page: number): boolean {
    return this.#free.has(page)
  }

  /** What was written as this page, newest first, as far as it can be read. */
  *versions(page: number): Generator<Buffer> {
    for (const at of (this.#logged.get(page) ?? []).toReversed()) {
      const bytes = this.log === undefined ? undefined : this.#readAt(this.log, at)
      if (bytes !== undefined) yield bytes
    }
    if (page < 1 || page > this.#filePages) return
    const bytes = this.#readAt(this.file, (page - 1) * this.pageBytes)
    if (bytes !== undefined) yield bytes
  }

  newest(page: number): Buffer | undefined {
    for (const bytes of this.versions(page)) return bytes
    return undefined
  }

  #readAt(fd: number, at: number): Buffer | undefined {
    const bytes = Buffer.alloc(this.pageBytes)
    try {
      return readSync(fd, bytes, 0, bytes.length, at) === bytes.length ? bytes : undefined
    } catch {
      // A place of the disk that cannot be read: the others can.
      return undefined
    }
  }

  /** @see https://www.sqlite.org/fileformat2.html#the_freelist */
  #findFree(first: Buffer): void {
    let trunk = first.readUInt32BE(freePagesAt)
    while (trunk > 1 && trunk <= this.lastPage && !this.#free.has(trunk)) {
      const bytes = this.newest(trunk)
      if (bytes === undefined) return
      this.#free.add(trunk)
      const count = Math.min(bytes.readUInt32BE(4), this.pageBytes / 4 - 2)
      for (let leaf = 0; leaf < count; leaf += 1) this.#free.add(bytes.readUInt32BE(8 + 4 * leaf))
      trunk = bytes.readUInt32BE(0)
    }
  }
}

function pageBytesOf(file: number, usual: number): number {
  const header = Buffer.alloc(pageBytesAt + 2)
  readSync(file, header, 0, header.length, 0)
  const told = header.readUInt16BE(pageBytesAt) === 1 ? 65_536 : header.readUInt16BE(pageBytesAt)
  const isSize = told >= 512 && (told & (told - 1)) === 0
  if (isSize && header.toString('latin1', 0, magic.length) === magic) return told
  const sizes = Array.from({ length: 8 }, (_, power) => 512 * 2 ** power)
  const shares = sizes.map((size) => shareOfPages(file, size))
  // At a multiple of the size as many look like pages, at a part of it fewer.
  const enough = Math.max(...shares) * 0.7
  return enough === 0 ? usual : (sizes.find((_, index) => (shares[index] ?? 0) >= enough) ?? usual)
}

/** How many of some pages look like pages at this size. */
function shareOfPages(file: number, size: number): number {
  const count = Math.min(sampledPages, Math.floor(fstatSync(file).size / size))
  const bytes = Buffer.alloc(size)
  let pages = 0
  for (let page = 2; page <= count; page += 1) {
    readSync(file, bytes, 0, size, (page - 1) * size)
    if (isPage(bytes, 0)) pages += 1
  }
  return pages / Math.max(1, count)
}
