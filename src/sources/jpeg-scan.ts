import type { Pieces } from '../lifecycle/in-turns.js'

/** What the coded data of a JPEG says about itself (ITU-T T.81). */
export type JpegScan = Readonly<{
  /** What is wrong with it, one clause; absent where it is whole, or was not looked into. */
  damage?: string
  /** It was looked into: Huffman codes in sequence, as nearly all cameras send. Progressive and arithmetic coding are not. */
  judged: boolean
  /** A marker says that it is over; some cameras leave that out. */
  ends: boolean
}>

const endsEarly = 'its data ends before the picture does'
const doesNotFit = 'its data does not fit the picture'

/** Blocks after which others have their turn: some hundred microseconds. */
const blocksInTurn = 2_048

type Component = { id: number; h: number; v: number; quantiser: number; isCoded: boolean }
type Frame = Readonly<{ widthPx: number; heightPx: number; bits: number; components: readonly Component[] }>
type Coded = {
  readonly component: Component
  readonly dc: HuffmanTable
  readonly ac: HuffmanTable
  /** Largest quantised mean of a block; a picture has none beyond black and white. */
  readonly mostMean: number
  mean: number
}

/**
 * Reads a JPEG's codes without making pixels of them. Decoders go on after damage, and most of them say nothing: codes find their step
 * again soon, and what remains is too much or too little data for the picture.
 *
 * @param bytes - Borrowed for the call.
 */
export function* scanJpeg(bytes: Uint8Array): Pieces<JpegScan> {
  const tables = new Map<number, HuffmanTable>()
  const quantisers = new Map<number, number>()
  let frame: Frame | undefined
  let judged = true
  let restartInterval = 0
  let at = 2
  for (;;) {
    const marker = nextMarker(bytes, at)
    if (marker === undefined) break
    at = marker.at + 2
    if (marker.code === markers.end) return { ...verdict(frame, judged), ends: true }
    if (!hasLength(marker.code)) continue
    const length = at + 1 < bytes.length ? u16(bytes, at) : 0
    const segment = bytes.subarray(at + 2, at + length)
    at += Math.max(2, length)
    if (at > bytes.length || length < 2) break
    if (marker.code === markers.tables) readTables(segment, tables)
    else if (marker.code === markers.quantisers) readQuantisers(segment, quantisers)
    else if (marker.code === markers.restartInterval && segment.length >= 2) restartInterval = u16(segment, 0)
    else if (marker.code === 0xc0 || marker.code === 0xc1) frame = readFrame(segment)
    else if (isFrame(marker.code)) judged = false
    else if (marker.code === markers.scan && judged) {
      const coded = frame && readScan(segment, frame, tables, quantisers)
      // A height that follows the data (DNL) is hardly ever sent.
      if (frame === undefined || coded === undefined || frame.heightPx === 0) judged = false
      else {
        const reader = new CodeReader(bytes, at)
        const damage = yield* readBlocks(reader, frame, coded, restartInterval)
        if (damage !== undefined) return { damage, judged, ends: hasEnd(bytes) }
        at = reader.at
      }
    }
  }
  return { ...verdict(frame, judged), ends: false }
}

const markers = { tables: 0xc4, end: 0xd9, scan: 0xda, quantisers: 0xdb, restartInterval: 0xdd } as const

const isRestart = (code: number) => code >= 0xd0 && code <= 0xd7
const hasLength = (code: number) => !isRestart(code) && code !== 0xd8 && code !== 0x01
const isFrame = (code: number) =>
  code >= 0xc2 && code <= 0xcf && code !== 0xc4 && code !== 0xc8 && code !== 0xcc
const u16 = (bytes: Uint8Array, at: number) => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

function verdict(frame: Frame | undefined, judged: boolean): Omit<JpegScan, 'ends'> {
  const isMissing = judged && frame?.components.every(({ isCoded }) => isCoded) !== true
  return { judged, ...(isMissing ? { damage: endsEarly } : {}) }
}

function hasEnd(bytes: Uint8Array): boolean {
  return (
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf(
      '\xff\xd9',
      undefined,
      'latin1',
    ) >= 0
  )
}

/** The next one, past data that is none. */
function nextMarker(bytes: Uint8Array, from: number): Readonly<{ code: number; at: number }> | undefined {
  for (let at = bytes.indexOf(0xff, from); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    const code = bytes[at + 1] ?? 0
    if (code !== 0 && code !== 0xff) return { code, at }
  }
  return undefined
}

function readFrame(segment: Uint8Array): Frame {
  const [bits = 8] = segment
  const components = Array.from({ length: segment[5] ?? 0 }, (_, index) => {
    const [id = 0, factors = 0, quantiser = 0] = segment.subarray(6 + index * 3)
    return { id, h: Math.max(1, factors >> 4), v: Math.max(1, factors & 15), quantiser, isCoded: false }
  })
  return { heightPx: u16(segment, 1), widthPx: u16(segment, 3), bits, components }
}

/** Of each table its first value, that of the means. */
function readQuantisers(segment: Uint8Array, quantisers: Map<number, number>): void {
  for (let at = 0; at < segment.length;) {
    const head = segment[at] ?? 0
    const isWide = head >> 4 !== 0
    quantisers.set(head & 15, isWide ? u16(segment, at + 1) : (segment[at + 1] ?? 0))
    at += isWide ? 129 : 65
  }
}

function readTables(segment: Uint8Array, tables: Map<number, HuffmanTable>): void {
  for (let at = 0; at + 17 <= segment.length;) {
    const counts = segment.subarray(at + 1, at + 17)
    const symbols = segment.subarray(at + 17, at + 17 + counts.reduce((sum, count) => sum + count, 0))
    tables.set(segment[at] ?? 0, new HuffmanTable(counts, symbols))
    at += 17 + symbols.length
  }
}

/** @returns `undefined` where it names what is not there. */
function readScan(
  segment: Uint8Array,
  frame: Frame,
  tables: ReadonlyMap<number, HuffmanTable>,
  quantisers: ReadonlyMap<number, number>,
): readonly Coded[] | undefined {
  const coded: Coded[] = []
  for (let index = 0; index < (segment[0] ?? 0); index += 1) {
    const [id, selectors = 0] = segment.subarray(1 + index * 2)
    const component = frame.components.find((one) => one.id === id)
    const dc = tables.get(selectors >> 4)
    const ac = tables.get(0x10 | (selectors & 15))
    if (component === undefined || dc === undefined || ac === undefined) return undefined
    const step = Math.max(1, quantisers.get(component.quantiser) ?? 1)
    // Some encoders round as they like.
    const mostMean = Math.ceil((2 ** (frame.bits + 2) * 1.05) / step) + 1
    coded.push({ component, dc, ac, mostMean, mean: 0 })
  }
  return coded.length === 0 ? undefined : coded
}

/** @returns what is wrong. */
function* readBlocks(
  reader: CodeReader,
  frame: Frame,
  coded: readonly Coded[],
  restartInterval: number,
): Pieces<string | undefined> {
  const units = unitsOf(frame, coded)
  const blocksOf = (component: Component) => (coded.length === 1 ? 1 : component.h * component.v)
  const blocksOfUnit = coded.reduce((sum, { component }) => sum + blocksOf(component), 0)
  const unitsInTurn = Math.ceil(blocksInTurn / Math.max(1, blocksOfUnit))
  for (let unit = 0; unit < units; unit += 1) {
    if (restartInterval > 0 && unit > 0 && unit % restartInterval === 0) {
      if (!reader.restart()) return reader.isOver ? endsEarly : doesNotFit
      for (const part of coded) part.mean = 0
    }
    for (const part of coded)
      for (let block = blocksOf(part.component); block > 0; block -= 1)
        if (!reader.block(part)) return reader.isShort ? endsEarly : doesNotFit
    if (unit % unitsInTurn === 0) yield
  }
  for (const { component } of coded) component.isCoded = true
  return reader.end() ? undefined : doesNotFit
}

/** Groups of blocks of a scan; of one component alone each block is one, and those beyond the picture are not there (A.2). */
function unitsOf({ widthPx, heightPx, components }: Frame, coded: readonly Coded[]): number {
  const mostH = Math.max(...components.map(({ h }) => h))
  const mostV = Math.max(...components.map(({ v }) => v))
  const [first] = coded
  if (coded.length > 1 || first === undefined)
    return Math.ceil(widthPx / (8 * mostH)) * Math.ceil(heightPx / (8 * mostV))
  const { h, v } = first.component
  return Math.ceil(Math.ceil((widthPx * h) / mostH) / 8) * Math.ceil(Math.ceil((heightPx * v) / mostV) / 8)
}

/** Finds the symbol of a code by the next 16 bits. */
class HuffmanTable {
  /** Bits of the code in the upper byte, 0 where there is none; its symbol in the lower. */
  readonly entries = new Uint16Array(0x1_0000)

  constructor(counts: Uint8Array, symbols: Uint8Array) {
    let from = 0
    let next = 0
    for (const [index, count] of counts.entries()) {
      const span = 1 << (15 - index)
      for (let nth = 0; nth < count && from < 0x1_0000; nth += 1, from += span)
        this.entries.fill(((index + 1) << 8) | (symbols[next++] ?? 0), from, from + span)
    }
  }
}

class CodeReader {
  /** Needed more than there was. */
  isShort = false
  /** Those that were read ahead, the next one highest of so many; what stands above is of the past. */
  #bits = 0
  #count = 0

  constructor(
    readonly bytes: Uint8Array,
    /** Of the byte that is read next. */
    public at: number,
  ) {}

  /** Nothing but a marker, or the end of all, comes next. */
  get isOver(): boolean {
    const { bytes, at } = this
    return at >= bytes.length || (bytes[at] === 0xff && bytes[at + 1] !== 0)
  }

  /** @returns whether there is one, and what it says can be. */
  block(part: Coded): boolean {
    const dcBits = this.#symbol(part.dc.entries)
    if (dcBits < 0 || dcBits > 15) return false
    part.mean += this.#value(dcBits)
    if (this.isShort || part.mean > part.mostMean || part.mean < -part.mostMean) return false
    const { entries } = part.ac
    for (let k = 1; k < 64; k += 1) {
      const symbol = this.#symbol(entries)
      if (symbol < 0) return false
      const bits = symbol & 15
      if (bits === 0) {
        if (symbol !== 0xf0) return true
        k += 15
      } else {
        k += symbol >> 4
        if (k > 63 || !this.#skip(bits)) return false
      }
    }
    return true
  }

  /** @returns whether a restart marker comes here. */
  restart(): boolean {
    this.#drop()
    this.#passFill()
    if (this.bytes[this.at] !== 0xff || !isRestart(this.bytes[this.at + 1] ?? 0)) return false
    this.at += 2
    return true
  }

  /** @returns whether nothing is left over, but for what fills up. */
  end(): boolean {
    this.#drop()
    while (!this.isOver && this.bytes[this.at] === 0) this.at += 1
    this.#passFill()
    return this.isOver
  }

  #passFill(): void {
    while (this.bytes[this.at] === 0xff && this.bytes[this.at + 1] === 0xff) this.at += 1
  }

  /** Whole bytes that were taken ahead go back. */
  #drop(): void {
    for (; this.#count >= 8; this.#count -= 8) {
      this.at -= 1
      if (this.bytes[this.at] === 0 && this.bytes[this.at - 1] === 0xff) this.at -= 1
    }
    this.#count = 0
    this.#bits = 0
  }

  #fill(): void {
    const { bytes } = this
    let [at, bits, count] = [this.at, this.#bits, this.#count]
    while (count <= 23 && at < bytes.length) {
      const byte = bytes[at] ?? 0
      if (byte === 0xff) {
        if (bytes[at + 1] !== 0) break
        at += 1
      }
      at += 1
      bits = (bits << 8) | byte
      count += 8
    }
    this.at = at
    this.#bits = bits
    this.#count = count
  }

  /** @returns -1 where there is none. */
  #symbol(entries: Uint16Array): number {
    if (this.#count < 16) this.#fill()
    const ahead = this.#count >= 16 ? this.#bits >>> (this.#count - 16) : this.#bits << (16 - this.#count)
    const entry = entries[ahead & 0xffff] ?? 0
    return entry !== 0 && this.#skip(entry >> 8) ? entry & 0xff : -1
  }

  /** A number of so many bits (F.1.2.1). */
  #value(bits: number): number {
    if (bits === 0 || !this.#skip(bits)) return 0
    const value = (this.#bits >>> this.#count) & ((1 << bits) - 1)
    return value < 1 << (bits - 1) ? value - (1 << bits) + 1 : value
  }

  #skip(bits: number): boolean {
    if (this.#count < bits) this.#fill()
    this.#count -= bits
    this.isShort = this.#count < 0
    return !this.isShort
  }
}
