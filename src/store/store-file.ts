import { existsSync, renameSync, statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { eventTypes } from '../messages/cloud-event.js'
import { CoverageTable, coverageTable } from './coverage-table.js'
import {
  positionInStore,
  streamPosition,
  type Gap,
  type PlacedRecord,
  type RangeQuery,
  type SinkPlace,
  type StreamedResult,
} from './record.js'
import { blobOf, Statements, columnText, type Row } from './statements.js'
import { StoreVersionError } from './store-trouble.js'

const schema = `
  CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    camera TEXT NOT NULL,
    seq INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    sink TEXT,
    value BLOB NOT NULL
  ) STRICT;
  CREATE INDEX results ON records (time_ms, camera, seq) WHERE type = '${eventTypes.detections}';
  CREATE INDEX events ON records (time_ms) WHERE type <> '${eventTypes.detections}';
  CREATE TABLE runs (epoch TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  CREATE TABLE sinks (sink TEXT PRIMARY KEY, settled INTEGER NOT NULL) STRICT;
  CREATE TABLE gaps (
    sink TEXT NOT NULL,
    camera TEXT NOT NULL,
    dropped INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    to_ms INTEGER NOT NULL,
    PRIMARY KEY (sink, camera)
  ) STRICT;
  CREATE TABLE forgotten (camera TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;
  ${coverageTable}
`
/** Of the file, in its header. A file of a later one is not touched. */
const schemaVersion = 1
/** Longest that a write waits for another connection: the reader of this process at a checkpoint. */
const busyTimeoutMs = 2_000
const columns = 'position, id, type, camera, seq, time_ms, sink, value'

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
  readonly #db: DatabaseSync
  readonly #statements: Statements
  readonly coverage: CoverageTable

  private constructor(
    readonly path: string,
    readOnly: boolean,
  ) {
    this.#db = new DatabaseSync(path, { readOnly, timeout: busyTimeoutMs })
    this.#statements = new Statements(this.#db)
    this.coverage = new CoverageTable(this.#statements)
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

  /** Puts a file that cannot be used out of the way, with what belongs to it. @returns where it is now. */
  static moveAside(path: string, atMs: number): string {
    const stamp = new Date(atMs).toISOString().replaceAll(/[:.]/g, '-')
    const aside = `${path}.damaged-${stamp}`
    for (const end of ['', '-wal', '-shm']) if (existsSync(path + end)) renameSync(path + end, aside + end)
    return aside
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  /** Bytes of the log, whose end is not yet in the file. */
  get logBytes(): number {
    return statSync(`${this.path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  }

  figures(): FileFigures {
    const pages = this.#statements.number(
      'SELECT page_count - freelist_count AS n FROM pragma_page_count, pragma_freelist_count',
    )
    return {
      usedBytes: pages * this.#statements.number('SELECT page_size AS n FROM pragma_page_size'),
    }
  }

  /** Position of the newest record; 0 without any. */
  get newest(): number {
    return this.#statements.number('SELECT max(position) AS n FROM records')
  }

  /** A run of the service begins, whose first record gets this position. */
  begin(epoch: string, first: number): void {
    this.#statements.run(
      'INSERT INTO runs VALUES (?, ?) ON CONFLICT DO UPDATE SET first = excluded.first',
      epoch,
      first,
    )
  }

  /**
   * These are the sinks there are: a new one begins behind the newest record, one that is gone is forgotten.
   */
  useSinks(sinks: readonly string[], newest: number): readonly SinkPlace[] {
    return this.#statements.together(false, () => {
      const known = this.#statements.all('SELECT sink FROM sinks').map(({ sink }) => columnText(sink))
      for (const sink of known.filter((name) => !sinks.includes(name))) {
        this.#statements.run('DELETE FROM sinks WHERE sink = ?', sink)
        this.#statements.run('DELETE FROM gaps WHERE sink = ?', sink)
      }
      for (const sink of sinks)
        this.#statements.run('INSERT INTO sinks VALUES (?, ?) ON CONFLICT DO NOTHING', sink, newest)
      return sinks.map((sink) => {
        const settled = this.#statements.number('SELECT settled AS n FROM sinks WHERE sink = ?', sink)
        const pending = this.#statements.number(
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
    this.#statements.together(durable, () => {
      for (const { position, id, type, cameraId, seq, timeMs, sink, value } of records)
        this.#statements.run(
          'INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
          ...[position, id, type, cameraId, seq, Math.round(timeMs), sink ?? null, value],
        )
      for (const [sink, position] of Object.entries(settled))
        this.#statements.run('UPDATE sinks SET settled = max(settled, ?) WHERE sink = ?', position, sink)
      for (const { sink, cameraId, dropped } of told) {
        this.#statements.run(
          'UPDATE gaps SET dropped = dropped - ? WHERE sink = ? AND camera = ?',
          dropped,
          sink,
          cameraId,
        )
        this.#statements.run(
          'DELETE FROM gaps WHERE sink = ? AND camera = ? AND dropped <= 0',
          sink,
          cameraId,
        )
      }
    })
  }

  /** Results of the camera up to here are asked for no more; those not delivered still are. */
  forget(cameraId: string, position: number): void {
    this.#statements.run(
      'INSERT INTO forgotten VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position',
      cameraId,
      position,
    )
  }

  /** Deletes the oldest results, whatever their age. Those a sink has not delivered are gaps to tell. @returns how many went. */
  dropResults(atMost: number): number {
    return this.#drop(
      `SELECT position FROM records INDEXED BY results WHERE type = '${eventTypes.detections}' ORDER BY time_ms LIMIT ?`,
      atMost,
    )
  }

  /** Deletes results and events from before this time. Those a sink has not delivered are gaps to tell. @returns how many went. */
  dropOlder(timeMs: number, atMost: number): number {
    const results = `SELECT position FROM records INDEXED BY results WHERE type = '${eventTypes.detections}' AND time_ms < ? LIMIT ?`
    const events = `SELECT position FROM records INDEXED BY events WHERE type <> '${eventTypes.detections}' AND time_ms < ? LIMIT ?`
    return this.#drop(results, timeMs, atMost) + this.#drop(events, timeMs, atMost)
  }

  /** What was deleted and nobody was told of yet. */
  gaps(): readonly Gap[] {
    return this.#statements.all('SELECT * FROM gaps').map((row) => ({
      sink: columnText(row['sink']),
      cameraId: columnText(row['camera']),
      dropped: Number(row['dropped']),
      fromMs: Number(row['from_ms']),
      toMs: Number(row['to_ms']),
    }))
  }

  /** Records for a sink behind a position, and before another, oldest first; one at least, whatever its size. */
  forSink(
    sink: string,
    after: number,
    below: number,
    limits: Readonly<{ records: number; bytes: number }>,
  ): readonly PlacedRecord[] {
    const rows = this.#statements.each(
      `SELECT ${columns} FROM records WHERE position > ? AND position < ? AND (sink IS NULL OR sink = ?) ORDER BY position LIMIT ?`,
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
    const rows = this.#statements.all(
      `SELECT position, camera, value FROM records WHERE position >= ? AND position < ? AND type = '${eventTypes.detections}' ORDER BY position LIMIT ?`,
      ...[positionInStore(after + 1), positionInStore(below), limit],
    )
    return rows.map((row) => ({
      position: streamPosition(Number(row['position'])),
      cameraId: columnText(row['camera']),
      value: blobOf(row['value']),
    }))
  }

  /**
   * A place in the stream of a run as a position of the stream. @returns undefined for a run that is not known; at most the last of that run, as what
   * it gave out later was never written.
   */
  placeOf(epoch: string, position: number): number | undefined {
    const [run] = this.#statements.all('SELECT first FROM runs WHERE epoch = ?', epoch)
    if (run === undefined) return undefined
    const next = this.#statements.number(
      'SELECT min(first) AS n FROM runs WHERE first > ?',
      Number(run['first']),
    )
    return next === 0 ? position : Math.min(position, streamPosition(next - 1))
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
    return this.#statements
      .all(
        `SELECT ${columns} FROM records INDEXED BY results WHERE type = '${eventTypes.detections}' AND ${text} ORDER BY time_ms DESC, camera DESC, seq DESC LIMIT ?`,
        ...[...conditions.flatMap(([, ...values]) => values), limit],
      )
      .map((row) => recordOf(row))
  }

  /** Moves what is in the log into the file, on the disk, while others read and write. */
  tend(): void {
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }

  #prepare(): void {
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0')
    const version = this.#statements.number('SELECT user_version AS n FROM pragma_user_version')
    if (version === schemaVersion) return
    if (version > schemaVersion) throw new StoreVersionError(this.path, version)
    this.#db.exec(`BEGIN IMMEDIATE; ${schema} PRAGMA user_version = ${schemaVersion}; COMMIT`)
  }

  #drop(select: string, ...values: SQLInputValue[]): number {
    return this.#statements.together(false, () => {
      const rows = this.#statements.all(
        `DELETE FROM records WHERE position IN (${select}) RETURNING position, camera, time_ms, sink`,
        ...values,
      )
      if (rows.length === 0) return 0
      const sinks = this.#statements.all('SELECT sink, settled FROM sinks')
      for (const { sink: name, settled } of sinks)
        for (const row of rows) {
          const isItsOwn = row['sink'] === null || row['sink'] === name
          if (isItsOwn && Number(row['position']) > Number(settled)) this.#missed(columnText(name), row)
        }
      return rows.length
    })
  }

  #missed(sink: string, row: Row): void {
    this.#statements.run(
      `INSERT INTO gaps VALUES (?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET dropped = dropped + 1,
        from_ms = min(from_ms, excluded.from_ms), to_ms = max(to_ms, excluded.to_ms)`,
      ...[sink, columnText(row['camera']), Number(row['time_ms']), Number(row['time_ms'])],
    )
  }
}

function recordOf(row: Row): PlacedRecord {
  const { sink } = row
  return {
    position: Number(row['position']),
    id: columnText(row['id']),
    type: columnText(row['type']) as PlacedRecord['type'],
    cameraId: columnText(row['camera']),
    seq: Number(row['seq']),
    timeMs: Number(row['time_ms']),
    value: blobOf(row['value']),
    ...(typeof sink === 'string' && { sink }),
  }
}
