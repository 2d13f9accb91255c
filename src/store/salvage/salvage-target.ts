import { eventTypes } from '../../messages/cloud-event.js'
import type { CoverageSpan } from '../../vision/coverage.js'
import { streamPosition, type Gap, type PlacedRecord } from '../record.js'
import type { Statements } from '../statements.js'
import { columnText } from '../statements.js'
import type { StoreFile } from '../store-file.js'
import type { Value } from './page.js'

/** Of one commit. */
const batch = { records: 1_000, bytes: 4 * 1024 ** 2 } as const
/** Moved into the file then, which waits for the disk. */
const longestLogBytes = 64 * 1024 ** 2
/** Longer stretches without a result are not of results that were lost: positions went on from a clock. */
const longestHole = 1_000_000
/** The camera of a gap in which nothing says which ones it was. */
const anyCamera = '*'

/** The new file, into which what is found comes in any order and more than once. */
export class SalvageTarget {
  records = 0
  #waiting: PlacedRecord[] = []
  #waitingBytes = 0
  #spans: CoverageSpan[] = []
  readonly #statements: Statements

  constructor(readonly file: StoreFile) {
    this.#statements = file.statements
    // What the index of results speaks of, whether its record is found or not.
    this.#statements.db.exec(
      'CREATE TEMP TABLE expected (position INTEGER PRIMARY KEY, camera TEXT NOT NULL, time_ms INTEGER NOT NULL)',
    )
  }

  record(record: PlacedRecord): void {
    this.#waiting.push(record)
    this.#waitingBytes += record.value.length
    if (this.#waiting.length >= batch.records || this.#waitingBytes >= batch.bytes) this.flush()
  }

  span(span: CoverageSpan): void {
    this.#spans.push(span)
    if (this.#spans.length >= batch.records) this.flush()
  }

  expect(position: number, cameraId: string, timeMs: number): void {
    this.#statements.run('INSERT OR IGNORE INTO expected VALUES (?, ?, ?)', position, cameraId, timeMs)
  }

  sinks(places: ReadonlyMap<string, number>): void {
    for (const [sink, settled] of places)
      this.#statements.run('INSERT OR REPLACE INTO sinks VALUES (?, ?)', sink, settled)
  }

  run([epoch, first]: readonly Value[]): void {
    if (typeof epoch === 'string' && typeof first === 'number')
      this.#statements.run('INSERT OR IGNORE INTO runs VALUES (?, ?)', epoch, first)
  }

  forgotten([camera, position]: readonly Value[]): void {
    if (typeof camera === 'string' && typeof position === 'number')
      this.#statements.run(
        'INSERT INTO forgotten VALUES (?, ?) ON CONFLICT DO UPDATE SET position = max(position, excluded.position)',
        ...[camera, position],
      )
  }

  gap([sink, cameraId, reason, dropped, fromMs, toMs]: readonly Value[]): void {
    if (typeof sink !== 'string' || typeof cameraId !== 'string') return
    if (reason !== 'retention' && reason !== 'damaged') return
    if (typeof dropped !== 'number' || typeof fromMs !== 'number' || typeof toMs !== 'number') return
    if (dropped > 0) this.file.gaps.add({ sink, cameraId, reason, dropped, fromMs, toMs })
  }

  flush(): void {
    const before = this.#recordCount()
    this.file.commit(this.#waiting, {}, [], false)
    this.records += this.#recordCount() - before
    this.#waiting = []
    this.#waitingBytes = 0
    this.#statements.together(false, () => {
      for (const span of this.#spans)
        this.#statements.run(
          'INSERT OR IGNORE INTO coverage VALUES (?, ?, ?, ?)',
          ...[span.cameraId, span.fromMs, span.toMs, JSON.stringify(span)],
        )
    })
    this.#spans = []
    if (this.file.logBytes > longestLogBytes) this.file.tend()
  }

  /**
   * Notes for each sink what it will not get.
   *
   * @param places - how far each of them is
   * @param isDamaged - something could not be read: what is missing between results was there
   * @returns how many records, of the sink that misses most.
   */
  tellLost(places: ReadonlyMap<string, number>, isDamaged: boolean): number {
    let most = 0
    for (const [sink, settled] of places) {
      const gaps = [...this.#knownLost(sink, settled), ...(isDamaged ? this.#holes(sink, settled) : [])]
      for (const gap of gaps) this.file.gaps.add(gap)
      most = Math.max(
        most,
        gaps.reduce((sum, { dropped }) => sum + dropped, 0),
      )
    }
    return most
  }

  #recordCount(): number {
    return this.#statements.number('SELECT total_changes() AS n')
  }

  #knownLost(sink: string, settled: number): readonly Gap[] {
    const rows = this.#statements.all(
      `SELECT camera, count(*) AS n, min(time_ms) AS first, max(time_ms) AS last FROM expected
        WHERE position > ? AND position NOT IN (SELECT position FROM records) GROUP BY camera`,
      settled,
    )
    return rows.map(({ camera, n, first, last }) => ({
      ...{ sink, cameraId: columnText(camera), reason: 'damaged' },
      ...{ dropped: Number(n), fromMs: Number(first), toMs: Number(last) },
    }))
  }

  /** Results are counted without holes within a run: where one is missing that nothing speaks of, it was lost. */
  #holes(sink: string, settled: number): readonly Gap[] {
    const rows = this.#statements.each(
      `SELECT position, time_ms FROM records WHERE position > ?1 AND type = '${eventTypes.detections}'
        UNION SELECT position, time_ms FROM expected WHERE position > ?1 ORDER BY position`,
      settled,
    )
    const runs = this.#statements
      .all('SELECT first FROM runs ORDER BY first')
      .map(({ first }) => Number(first))
    let [before, beforeMs] = [settled, Number.NaN]
    let gap: Gap | undefined
    for (const row of rows) {
      const [position, timeMs] = [Number(row['position']), Number(row['time_ms'])]
      const missing = streamPosition(position) - streamPosition(before) - 1
      const isOtherRun = runs.some((first) => first > before + 1 && first <= position)
      if (before > 0 && missing > 0 && missing < longestHole && !isOtherRun) {
        const fromMs = Number.isNaN(beforeMs) ? timeMs : beforeMs
        gap = {
          ...{ sink, cameraId: anyCamera, reason: 'damaged', dropped: missing + (gap?.dropped ?? 0) },
          ...{ fromMs: Math.min(fromMs, gap?.fromMs ?? fromMs), toMs: Math.max(timeMs, gap?.toMs ?? timeMs) },
        }
      }
      ;[before, beforeMs] = [position, timeMs]
    }
    return gap === undefined ? [] : [gap]
  }
}
