import { nowMs } from '../../lifecycle/clock.js'
import { eventTypes, type EventType } from '../../messages/cloud-event.js'
import type { CoverageSpan } from '../../vision/coverage.js'
import type { PlacedRecord } from '../record.js'
import { isAsWritten } from '../record-row.js'
import { pageBytes, prepareSchema } from '../schema.js'
import { DatabaseSync } from '../sqlite.js'
import type { StoreFile } from '../store-file.js'
import type { DamagedFile } from './damaged-file.js'
import { headerBytesOf, readPage, type PageRow, type ReadPage } from './page.js'
import { SalvageTarget } from './salvage-target.js'

/** What is delivered already is brought over for so long; what is not, however long it takes. */
const pastWithinMs = 10_000
/** What became of a page. Those that are `unread` in the end cannot be read. */
const pageStates = { unread: 0, read: 1, behindARow: 2, free: 3 } as const

/** What could be brought over. */
export type Salvaged = Readonly<{
  records: number
  /** That some sink had not delivered: how many are known to be missing, at most. */
  lost: number
}>

/**
 * Brings what can be read of a damaged file into an empty one: records, places of sinks, runs, time of cameras. It goes once over all
 * pages, as the way to a page may lead over one that is damaged; a page tells by its rows what it is part of.
 *
 * @param sinks - that there are now
 * @param known - where they are as far as this run knows, by name
 */
export function salvage(
  from: DamagedFile,
  to: StoreFile,
  sinks: readonly string[],
  known: Readonly<Record<string, number>>,
): Salvaged {
  return new Salvage(from, new SalvageTarget(to), sinks, known).run()
}

class Salvage {
  readonly #states: Uint8Array
  /** Pages and rows of which something cannot be read. */
  #damages = 0
  #undeliveredAfter = 0
  readonly #pastUntilMs = nowMs() + pastWithinMs

  constructor(
    readonly from: DamagedFile,
    readonly to: SalvageTarget,
    readonly sinks: readonly string[],
    readonly known: Readonly<Record<string, number>>,
  ) {
    this.#states = new Uint8Array(from.lastPage + 1)
  }

  run(): Salvaged {
    const places = this.#smallTables()
    this.#undeliveredAfter = Math.min(...places.values(), Number.MAX_SAFE_INTEGER)
    for (let page = 1; page <= this.from.lastPage; page += 1) this.#page(page)
    this.to.flush()
    for (let page = 2; page <= this.from.lastPage; page += 1)
      if (this.#states[page] === pageStates.unread) this.#damages += 1
    return { records: this.to.records, lost: this.to.tellLost(places, this.#damages > 0) }
  }

  /** @returns how far each sink is that is known. */
  #smallTables(): ReadonlyMap<string, number> {
    const roots = this.#roots()
    const rowsOf = (table: string) => [...this.#rowsBelow(roots.get(table) ?? 0)]
    const places = new Map(Object.entries(this.known).filter(([sink]) => this.sinks.includes(sink)))
    for (const { values } of rowsOf('sinks')) {
      const [sink, settled] = values
      if (typeof sink !== 'string' || !this.sinks.includes(sink) || !isPosition(settled)) continue
      places.set(sink, Math.max(places.get(sink) ?? 0, settled))
    }
    // Where it cannot be read, all may be undelivered: it comes again, with the same ids.
    const isLost = this.#read(roots.get('sinks') ?? 0)?.kind !== 'leafTable'
    for (const sink of this.sinks) if (isLost && !places.has(sink)) places.set(sink, 0)
    this.to.sinks(places)
    for (const { values } of rowsOf('runs')) this.to.run(values)
    for (const { values } of rowsOf('forgotten')) this.to.forgotten(values)
    for (const { values } of this.#read(roots.get('gaps') ?? 0)?.rows ?? []) this.to.gap(values)
    return places
  }

  /** Pages on which tables begin, as the file says, or as a new one has it. */
  #roots(): ReadonlyMap<string, number> {
    using usual = new DatabaseSync(':memory:')
    usual.exec(`PRAGMA page_size = ${pageBytes}`)
    prepareSchema(usual, ':memory:')
    const tables = usual.prepare("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").all()
    const roots = new Map(tables.map(({ name, rootpage }) => [String(name), Number(rootpage)]))
    for (const { values } of this.#rowsBelow(1)) {
      const [type, name, , root] = values
      if (type === 'table' && typeof name === 'string' && isPosition(root)) roots.set(name, root)
    }
    return roots
  }

  /** Rows of all versions there are of a table of few pages. */
  *#rowsBelow(page: number, depth = 0): Generator<PageRow> {
    if (page < 1 || page > this.from.lastPage || depth > 3) return
    for (const bytes of this.from.versions(page)) {
      const read = readPage(bytes, headerBytesOf(page), this.#follow)
      if (read === undefined) continue
      this.#states[page] = pageStates.read
      if (read.kind === 'leafTable') yield* read.rows
      else if (read.kind === 'innerTable')
        for (const child of read.children) yield* this.#rowsBelow(child, depth + 1)
    }
  }

  /** The newest version of it that is a page. */
  #read(page: number): ReadPage | undefined {
    for (const bytes of this.from.versions(page)) {
      const read = readPage(bytes, headerBytesOf(page), this.#follow)
      if (read !== undefined) return read
    }
    return undefined
  }

  /** Records are never changed: where the newest version of a page is not whole, an older one adds what it has. */
  #page(page: number): void {
    if (this.from.isFree(page)) this.#states[page] = pageStates.free
    if (this.#states[page] === pageStates.free) return
    for (const bytes of this.from.versions(page)) {
      const read = readPage(bytes, headerBytesOf(page), this.#follow)
      if (read === undefined) continue
      this.#states[page] = pageStates.read
      for (const row of read.rows) this.#row(row)
      if (read.isWhole) return
      this.#damages += 1
    }
  }

  #row({ rowid, values }: PageRow): void {
    if (rowid !== undefined) return this.#record(rowid, values)
    const [first, second, third, fourth] = values
    if (values.length !== 4) return
    // An entry of the index of results: a place where there should be one.
    if (isTime(first) && typeof second === 'string' && isPosition(third) && isPosition(fourth)) {
      if (fourth > this.#undeliveredAfter) this.to.expect(fourth, second, first)
    } else if (typeof first === 'string' && typeof fourth === 'string') {
      const span = objectOf(fourth)
      if (span?.['cameraId'] === first && span['fromMs'] === second && span['toMs'] === third)
        this.to.span(span as CoverageSpan)
    }
  }

  #record(position: number, values: PageRow['values']): void {
    const [, id, type, cameraId, seq, timeMs, sink, value, crc] = values
    if (values.length < 8 || values.length > 9 || !(value instanceof Uint8Array) || !isPosition(position))
      return
    if (typeof id !== 'string' || typeof cameraId !== 'string' || !isEventType(type)) return
    if (!isPosition(seq) || !isTime(timeMs) || (sink !== null && typeof sink !== 'string')) return
    if (position <= this.#undeliveredAfter && nowMs() > this.#pastUntilMs) return
    // Of a file without sums: bytes that were damaged are rarely JSON.
    const isRight = crc === undefined ? objectOf(value) !== undefined : isAsWritten(position, id, value, crc)
    if (!isRight) {
      this.#damages += 1
      return
    }
    const record: PlacedRecord = {
      position,
      id,
      type,
      cameraId,
      seq,
      timeMs,
      value,
      ...(sink !== null && { sink }),
    }
    this.to.record(record)
  }

  readonly #follow = (page: number): Buffer | undefined => {
    const bytes = this.from.newest(page)
    if (bytes !== undefined && this.#states[page] === pageStates.unread)
      this.#states[page] = pageStates.behindARow
    return bytes
  }
}

function isPosition(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function isEventType(value: unknown): value is EventType {
  return Object.values(eventTypes).some((type) => type === value)
}

/** JSON, where it is an object. */
function objectOf(json: string | Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const text = typeof json === 'string' ? json : new TextDecoder('utf-8', { fatal: true }).decode(json)
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
