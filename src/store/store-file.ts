import { existsSync, statSync } from 'node:fs'
import type { DatabaseSync as Database, SQLInputValue } from 'node:sqlite'
import { eventTypes } from '../messages/cloud-event.js'
import { CoverageTable } from './coverage-table.js'
import { GapTable } from './gap-table.js'
import {
  positionInStore,
  streamPosition,
  type Gap,
  type PlacedRecord,
  type RangeQuery,
  type SinkPlace,
  type StreamedResult,
} from './record.js'
import { RecordAges } from './record-ages.js'
import { checkedValue, recordColumns, recordOf, rowOf } from './record-row.js'
import { pageBytes, prepareSchema } from './schema.js'
import { DatabaseSync } from './sqlite.js'
import { Statements, columnText, type Row } from './statements.js'

/** Longest that a write waits for another connection: the reader of this process at a checkpoint. */
const busyTimeoutMs = 2_000

/** Results of cameras that took longer than others lie behind those of a later time: of so many the first is looked for. */
const mostOutOfTime = 1_000

/** What a file says about its own state. */
export type FileFigures = Readonly<{
  /** Pages that hold something. */
  usedBytes: number
}>

/**
 * The SQLite file of records: one process writes it, in one thread; others read. Every call holds its thread up.
 *
 * In WAL mode: who reads never waits for who writes. A commit is in the hands of the system, which the death of any process does not
 * change; with `durable` it has reached the disk as well.
 */
export class StoreFile {
  readonly #db: Database
  readonly statements: Statements
  readonly coverage: CoverageTable
  readonly gaps: GapTable
  readonly ages: RecordAges
  readonly #inode: number
  #newest: number | undefined
  /** No result has a lower position. */
  #resultsFrom = 0

  private constructor(
    readonly path: string,
    readOnly: boolean,
  ) {
    this.#db = new DatabaseSync(path, { readOnly, timeout: busyTimeoutMs })
    this.#inode = statSync(path).ino
    this.statements = new Statements(this.#db)
    this.coverage = new CoverageTable(this.statements)
    this.gaps = new GapTable(this.statements)
    this.ages = new RecordAges(this.statements)
  }

  /** Makes the file where there is none. @throws what SQLite throws; StoreVersionError */
  static openToWrite(path: string): StoreFile {
    const file = new StoreFile(path, false)
    try {
      file.#prepare()
      return file
    } catch (error) {
      file.close()
      throw error
    }
  }

  /** @returns undefined where there is none. @throws what SQLite throws */
  static openToRead(path: string): StoreFile | undefined {
    return existsSync(path) ? new StoreFile(path, true) : undefined
  }

  /** Reads, and moves what was written from the log into the file: a connection that may write, and writes no record. */
  static openToTend(path: string): StoreFile | undefined {
    return existsSync(path) ? new StoreFile(path, false) : undefined
  }

  get isOpen(): boolean {
    return this.#db.isOpen
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  /** Whether another file has taken its place since it was opened. */
  get isReplaced(): boolean {
    return statSync(this.path, { throwIfNoEntry: false })?.ino !== this.#inode
  }

  /** Bytes of the log, whose end is not yet in the file. */
  get logBytes(): number {
    return statSync(`${this.path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  }

  figures(): FileFigures {
    const pages = this.statements.number(
      'SELECT page_count - freelist_count AS n FROM pragma_page_count, pragma_freelist_count',
    )
    return {
      usedBytes: pages * this.statements.number('SELECT page_size AS n FROM pragma_page_size'),
    }
  }

  /** Position of the newest record that there ever was, also of one that is deleted since; 0 without any. */
  get newest(): number {
    this.#newest ??= this.statements.number(
      `SELECT max(n) AS n FROM (SELECT max(position) AS n FROM records UNION ALL SELECT max(first) - 1 FROM runs
        UNION ALL SELECT max(settled) FROM sinks)`,
    )
    return this.#newest
  }

  /** A run of the service begins, whose first record gets this position. */
  begin(epoch: string, first: number): void {
    this.statements.run(
      'INSERT INTO runs VALUES (?, ?) ON CONFLICT DO UPDATE SET first = excluded.first',
      epoch,
      first,
    )
  }

  /**
   * These are the sinks there are: a new one begins behind the newest record, one that is gone is forgotten.
   */
  useSinks(sinks: readonly string[], newest: number): readonly SinkPlace[] {
    return this.statements.together(false, () => {
      const known = this.statements.all('SELECT sink FROM sinks').map(({ sink }) => columnText(sink))
      for (const sink of known.filter((name) => !sinks.includes(name))) {
        this.statements.run('DELETE FROM sinks WHERE sink = ?', sink)
        this.gaps.forget(sink)
      }
      for (const sink of sinks)
        this.statements.run('INSERT INTO sinks VALUES (?, ?) ON CONFLICT DO NOTHING', sink, newest)
      return sinks.map((sink) => {
        const settled = this.statements.number('SELECT settled AS n FROM sinks WHERE sink = ?', sink)
        const pending = this.statements.number(
          'SELECT count(*) AS n FROM records WHERE position > ? AND (sink IS NULL OR sink = ?)',
          settled,
          sink,
        )
        return { sink, settled, pending }
      })
    })
  }

  /** All of it or nothing. @param durable - on the disk when this returns. */
  commit(
    records: readonly PlacedRecord[],
    settled: Readonly<Record<string, number>>,
    told: readonly Gap[],
    durable: boolean,
  ): void {
    this.statements.together(durable, () => {
      for (const record of records)
        this.statements.run(
          'INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
          ...rowOf(record),
        )
      for (const [sink, position] of Object.entries(settled))
        this.statements.run('UPDATE sinks SET settled = max(settled, ?) WHERE sink = ?', position, sink)
      for (const gap of told) this.gaps.told(gap)
    })
    this.#newest = Math.max(this.newest, records.at(-1)?.position ?? 0)
  }

  /** Results of the camera up to here are asked for no more; those not delivered still are. */
  forget(cameraId: string, position: number): void {
    this.statements.run(
      'INSERT INTO forgotten VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position',
      cameraId,
      position,
    )
  }

  /** Deletes the oldest results, whatever their age. Those a sink has not delivered are gaps to tell. @returns how many went. */
  dropResults(atMost: number): number {
    const oldest = this.statements
      .all(
        `SELECT position FROM records WHERE position >= ? AND type = '${eventTypes.detections}' ORDER BY position LIMIT ?`,
        ...[this.#resultsFrom, atMost],
      )
      .map(({ position }) => Number(position))
    const last = oldest.at(-1)
    if (last === undefined) return 0
    const dropped = this.#drop(`type = '${eventTypes.detections}' AND position >= ?`, this.#resultsFrom, last)
    this.#resultsFrom = last + 1
    return dropped
  }

  /** Deletes results and events up to this position. Those a sink has not delivered are gaps to tell. @returns how many went. */
  dropUpTo(position: number, atMost: number): number {
    const last = this.statements.number(
      'SELECT max(position) AS n FROM (SELECT position FROM records WHERE position <= ? ORDER BY position LIMIT ?)',
      ...[position, atMost],
    )
    return last === 0 ? 0 : this.#drop('position >= ?', 0, last)
  }

  /** Records for a sink behind a position, and before another, oldest first; one at least, whatever its size. */
  forSink(
    sink: string,
    after: number,
    below: number,
    limits: Readonly<{ records: number; bytes: number }>,
  ): readonly PlacedRecord[] {
    const rows = this.statements.each(
      `SELECT ${recordColumns} FROM records WHERE position > ? AND position < ? AND (sink IS NULL OR sink = ?) ORDER BY position LIMIT ?`,
      ...[after, below, sink, limits.records],
    )
    const found: PlacedRecord[] = []
    let bytes = 0
    for (const row of rows) {
      const record = recordOf(row)
      bytes += record.value.length
      if (found.length > 0 && bytes > limits.bytes) break
      found.push(record)
    }
    return found
  }

  /** Results behind a position of the stream and before another, oldest first. */
  stream(after: number, below: number, limit: number): readonly StreamedResult[] {
    const rows = this.statements.all(
      `SELECT position, id, camera, value, crc FROM records WHERE position >= ? AND position < ? AND type = '${eventTypes.detections}' ORDER BY position LIMIT ?`,
      ...[positionInStore(after + 1), positionInStore(below), limit],
    )
    return rows.map((row) => ({
      position: streamPosition(Number(row['position'])),
      cameraId: columnText(row['camera']),
      value: checkedValue(row),
    }))
  }

  /**
   * A place in the stream of a run as a position of the stream. @returns undefined for a run that is not known; at most the last of that run, as what
   * it gave out later was never written.
   */
  placeOf(epoch: string, position: number): number | undefined {
    const [run] = this.statements.all('SELECT first FROM runs WHERE epoch = ?', epoch)
    if (run === undefined) return undefined
    const next = this.statements.number(
      'SELECT min(first) AS n FROM runs WHERE first > ?',
      Number(run['first']),
    )
    return next === 0 ? position : Math.min(position, streamPosition(next - 1))
  }

  /** The place in the stream before the first of the results from a time on. @returns undefined where there is none. */
  placeAt(timeMs: number): number | undefined {
    // They are stored in the order of their publishing, which is nearly that of their times.
    const first = this.statements.number(
      `SELECT min(position) AS n FROM (SELECT position FROM records INDEXED BY results WHERE type = '${eventTypes.detections}' AND time_ms >= ? ORDER BY time_ms LIMIT ${mostOutOfTime})`,
      timeMs,
    )
    return first === 0 ? undefined : streamPosition(first) - 1
  }

  /** Results, newest first. */
  range(query: RangeQuery): readonly PlacedRecord[] {
    const { cameraId, fromMs, toMs, before, contains, limit } = query
    const conditions: [string, ...SQLInputValue[]][] = [
      ['time_ms >= ? AND time_ms < ?', fromMs, toMs],
      ['position > coalesce((SELECT position FROM forgotten WHERE camera = records.camera), 0)'],
    ]
    if (cameraId !== undefined) conditions.push(['camera = ?', cameraId])
    if (before !== undefined)
      conditions.push(['(time_ms, camera, seq) < (?, ?, ?)', before.timeMs, before.cameraId, before.seq])
    if (contains !== undefined) conditions.push(['instr(value, CAST(? AS BLOB)) > 0', contains])
    const text = conditions.map(([condition]) => condition).join(' AND ')
    return this.statements
      .all(
        `SELECT ${recordColumns} FROM records INDEXED BY results WHERE type = '${eventTypes.detections}' AND ${text} ORDER BY time_ms DESC, camera DESC, seq DESC LIMIT ?`,
        ...[...conditions.flatMap(([, ...values]) => values), limit],
      )
      .map((row) => recordOf(row))
  }

  /** Moves what is in the log into the file, on the disk, while others read and write. */
  tend(): void {
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }

  #prepare(): void {
    // The size of pages is that of a file that has none yet.
    this.#db.exec(
      `PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0`,
    )
    prepareSchema(this.#db, this.path)
  }

  #drop(which: string, from: number, to: number): number {
    return this.statements.together(false, () => {
      const rows = this.statements.all(
        `DELETE FROM records WHERE ${which} AND position <= ? RETURNING position, camera, time_ms, sink`,
        ...[from, to],
      )
      const sinks = this.statements.all('SELECT sink, settled FROM sinks')
      for (const { sink, settled } of sinks)
        for (const row of rows) {
          const isItsOwn = row['sink'] === null || row['sink'] === sink
          if (isItsOwn && Number(row['position']) > Number(settled)) this.#missed(columnText(sink), row)
        }
      return rows.length
    })
  }

  #missed(sink: string, row: Row): void {
    const timeMs = Number(row['time_ms'])
    this.gaps.add({
      ...{ sink, cameraId: columnText(row['camera']), reason: 'retention', dropped: 1 },
      ...{ fromMs: timeMs, toMs: timeMs },
    })
  }
}
