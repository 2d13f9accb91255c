/** @see https://www.sqlite.org/fileformat2.html#b_tree_pages */
const kinds = { innerIndex: 0x02, innerTable: 0x05, leafIndex: 0x0a, leafTable: 0x0d } as const
export type PageKind = keyof typeof kinds
const kindOf = new Map<number, PageKind>(
  Object.entries(kinds).map(([name, number]) => [number, name as PageKind]),
)

/** Longest row that is believed: a result is some kilobytes. */
const maxRowBytes = 16 * 1024 ** 2

/** A column of a row. */
export type Value = null | number | string | Uint8Array
/** A row of a table with its number, or an entry of an index. */
export type PageRow = Readonly<{ rowid: number | undefined; values: readonly Value[] }>
export type ReadPage = Readonly<{
  kind: PageKind
  rows: readonly PageRow[]
  /** Pages below. */
  children: readonly number[]
  /** Whether all of it could be read. */
  isWhole: boolean
}>

/** Before what is on the page: the header of the file is on its first one. */
export function headerBytesOf(page: number): number {
  return page === 1 ? 100 : 0
}

/** Whether these bytes may be a page of a table or an index. */
export function isPage(bytes: Buffer, from: number): boolean {
  const kind = kindOf.get(bytes[from] ?? 0)
  if (kind === undefined) return false
  const count = bytes.readUInt16BE(from + 3)
  return pointersAt(kind, from) + 2 * count <= bytes.length
}

/**
 * What is on a page, as far as it can be read: each row stands for itself.
 *
 * @param from - {@link headerBytesOf}
 * @param follow - the page behind which a row goes on
 * @returns undefined for what is no page of a table or an index
 */
export function readPage(
  bytes: Buffer,
  from: number,
  follow: (page: number) => Buffer | undefined,
): ReadPage | undefined {
  const kind = kindOf.get(bytes[from] ?? 0)
  if (kind === undefined || !isPage(bytes, from)) return undefined
  const rows: PageRow[] = []
  const children: number[] = []
  let isWhole = true
  const isInner = kind === 'innerIndex' || kind === 'innerTable'
  if (isInner) children.push(bytes.readUInt32BE(from + 8))
  for (let cell = 0; cell < bytes.readUInt16BE(from + 3); cell += 1) {
    const at = bytes.readUInt16BE(pointersAt(kind, from) + 2 * cell)
    const reader = new CellReader(bytes, at)
    try {
      if (isInner) children.push(reader.uint32())
      if (kind !== 'innerTable') rows.push(reader.row(kind === 'leafTable', follow))
    } catch {
      isWhole = false
    }
  }
  return { kind, rows, children, isWhole }
}

function pointersAt(kind: PageKind, from: number): number {
  return from + (kind === 'innerIndex' || kind === 'innerTable' ? 12 : 8)
}

class Unreadable extends Error {}

/** Reads a cell of a page. @throws Unreadable; RangeError */
class CellReader {
  constructor(
    readonly bytes: Buffer,
    public at: number,
  ) {}

  uint32(): number {
    const value = this.bytes.readUInt32BE(this.at)
    this.at += 4
    return value
  }

  /** A row that may go on on other pages. */
  row(isTable: boolean, follow: (page: number) => Buffer | undefined): PageRow {
    const length = this.varint()
    if (length > maxRowBytes) throw new Unreadable()
    const rowid = isTable ? this.varint() : undefined
    const values = valuesOf(this.#payload(length, isTable, follow))
    return { rowid, values }
  }

  /** Up to 64 bits; beyond those of a number it is not exact, and no position. */
  varint(): number {
    let value = 0
    for (let index = 0; index < 9; index += 1) {
      const byte = this.bytes.readUInt8(this.at)
      this.at += 1
      if (index === 8) return value * 256 + byte
      value = value * 128 + (byte & 0x7f)
      if (byte < 0x80) return value
    }
    return value
  }

  /** @see https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages */
  #payload(length: number, isTable: boolean, follow: (page: number) => Buffer | undefined): Buffer {
    const usable = this.bytes.length
    const most = isTable ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23
    if (length <= most) return this.#slice(length)
    const least = Math.floor(((usable - 12) * 32) / 255) - 23
    const fitting = least + ((length - least) % (usable - 4))
    const parts = [this.#slice(fitting <= most ? fitting : least)]
    let left = length - (parts[0]?.length ?? 0)
    for (let next = this.uint32(); left > 0;) {
      const page = follow(next)
      if (page === undefined) throw new Unreadable()
      parts.push(page.subarray(4, 4 + Math.min(left, usable - 4)))
      left -= usable - 4
      next = page.readUInt32BE(0)
    }
    return Buffer.concat(parts, length)
  }

  #slice(length: number): Buffer {
    const end = this.at + length
    if (end > this.bytes.length) throw new Unreadable()
    const slice = this.bytes.subarray(this.at, end)
    this.at = end
    return slice
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @see https://www.sqlite.org/fileformat2.html#record_format */
function valuesOf(payload: Buffer): readonly Value[] {
  const header = new CellReader(payload, 0)
  const headerLength = header.varint()
  if (headerLength > payload.length) throw new Unreadable()
  const values: Value[] = []
  let at = headerLength
  while (header.at < headerLength) {
    const type = header.varint()
    const length = lengthOf(type)
    if (at + length > payload.length) throw new Unreadable()
    values.push(valueOf(type, payload.subarray(at, at + length)))
    at += length
  }
  if (at !== payload.length) throw new Unreadable()
  return values
}

function lengthOf(type: number): number {
  if (type >= 12) return Math.floor((type - 12) / 2)
  const length = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0][type]
  if (length === undefined) throw new Unreadable()
  return length
}

function valueOf(type: number, bytes: Buffer): Value {
  if (type >= 12) return type % 2 === 0 ? bytes : utf8.decode(bytes)
  if (type === 0) return null
  if (type === 8) return 0
  if (type === 9) return 1
  if (type === 7) return bytes.readDoubleBE(0)
  return bytes.length === 8 ? Number(bytes.readBigInt64BE(0)) : bytes.readIntBE(0, bytes.length)
}
