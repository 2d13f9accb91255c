import { machineUptime } from '../lifecycle/machine-uptime.js'
import { columnText, type Statements } from './statements.js'

export const ageTable = `
  CREATE TABLE ages (
    age_ms INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    boot TEXT NOT NULL,
    uptime_ms INTEGER NOT NULL
  ) STRICT;
`

const longestBetweenMarksMs = 60_000
const marksOfAnAge = 20
/** A mark may come so much later than it should: the thread was at something else. */
const lateMs = 5_000

/** All records up to `position` are too old; and the earliest wall time at which that can be said of anything. */
export type Expired = Readonly<{ position: number; beforeWallMs: number }>

/**
 * How old records are. It is told by how long the machine was on since, not by its clock: one that is set, or goes wrong in either
 * direction, makes no record older or younger. The time a machine is off is not counted, as then a clock alone could tell it.
 *
 * Marks in the file say up to where records were at what age of the file, so that no record needs a time of its own for this.
 */
export class RecordAges {
  #ageMs = 0
  #uptimeMs = 0
  #markedMs = Number.NEGATIVE_INFINITY

  constructor(
    readonly statements: Statements,
    readonly uptime = machineUptime,
  ) {}

  /**
   * The file is written from now on. @param newest - position of the newest record that is there
   * @param maxAgeMs - what records may reach
   */
  begin(newest: number, maxAgeMs: number, wallMs: number): void {
    const { ms, boot } = this.uptime()
    this.#uptimeMs = ms
    const [last] = this.statements.all('SELECT * FROM ages ORDER BY age_ms DESC LIMIT 1')
    if (last === undefined) return this.mark(newest, maxAgeMs, wallMs)
    const lastMs = Number(last['age_ms'])
    const isSameBoot = boot !== '' && columnText(last['boot']) === boot
    const sinceMs = isSameBoot ? Math.max(0, ms - Number(last['uptime_ms'])) : 0
    this.#ageMs = lastMs + sinceMs
    // What came behind the last mark did so before the next one was due, however long ago that is.
    const dueMs = lastMs + markEveryMs(maxAgeMs) + lateMs
    if (dueMs < this.#ageMs) this.#write(dueMs, newest, Number(last['wall_ms']))
    this.mark(newest, maxAgeMs, wallMs)
  }

  /** Notes where records are now, where that is due. */
  mark(newest: number, maxAgeMs: number, wallMs: number): void {
    const ageMs = this.#now()
    if (ageMs - this.#markedMs < markEveryMs(maxAgeMs)) return
    this.#write(ageMs, newest, wallMs)
  }

  /** The oldest mark, where it is over the age. */
  expired(maxAgeMs: number): Expired | undefined {
    const [oldest] = this.statements.all('SELECT age_ms, position FROM ages ORDER BY age_ms LIMIT 1')
    if (oldest === undefined || this.#now() - Number(oldest['age_ms']) < maxAgeMs) return undefined
    // Where the clock was set back meanwhile, what it told before is not older than what it told then.
    const beforeWallMs = this.statements.number('SELECT min(wall_ms) AS n FROM ages')
    return { position: Number(oldest['position']), beforeWallMs }
  }

  /** What the oldest mark is about is gone. */
  dropOldest(): void {
    this.statements.run('DELETE FROM ages WHERE age_ms = (SELECT min(age_ms) FROM ages)')
  }

  #now(): number {
    const { ms } = this.uptime()
    this.#ageMs += Math.max(0, ms - this.#uptimeMs)
    this.#uptimeMs = ms
    return this.#ageMs
  }

  #write(ageMs: number, newest: number, wallMs: number): void {
    const { ms, boot } = this.uptime()
    this.statements.run(
      // The same age: the first mark after another start of the machine. What is known of records stays.
      'INSERT INTO ages VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET boot = excluded.boot, uptime_ms = excluded.uptime_ms',
      ...[ageMs, newest, wallMs, boot, Math.round(ms - (this.#ageMs - ageMs))],
    )
    this.#markedMs = ageMs
  }
}

function markEveryMs(maxAgeMs: number): number {
  return Math.min(longestBetweenMarksMs, maxAgeMs / marksOfAnAge)
}
