import type { CoverageSpan } from '../vision/coverage.js'
import { columnText, type Statements } from './statements.js'

export const coverageTable = `
  CREATE TABLE coverage (
    camera TEXT NOT NULL,
    from_ms REAL NOT NULL,
    to_ms REAL NOT NULL,
    span TEXT NOT NULL,
    PRIMARY KEY (camera, from_ms)
  ) STRICT, WITHOUT ROWID;
`

/** The time of cameras in the file of the store. */
export class CoverageTable {
  constructor(readonly statements: Statements) {}

  /** In place of what there is of each camera from its first span on. */
  replace(lists: readonly (readonly CoverageSpan[])[]): void {
    const { statements } = this
    statements.together(false, () => {
      for (const spans of lists) {
        const [first] = spans
        if (first === undefined) continue
        statements.run('DELETE FROM coverage WHERE camera = ? AND from_ms >= ?', first.cameraId, first.fromMs)
        for (const span of spans)
          statements.run(
            'INSERT INTO coverage VALUES (?, ?, ?, ?)',
            ...[span.cameraId, span.fromMs, span.toMs, JSON.stringify(span)],
          )
      }
    })
  }

  /** What ended before this time. Looks at all there is: not for every commit. */
  dropOlder(timeMs: number): void {
    this.statements.run('DELETE FROM coverage WHERE to_ms < ?', timeMs)
  }

  /** What lies at least partly within, by camera in order of time. */
  range(cameraId: string | undefined, fromMs: number, toMs: number, limit: number): readonly CoverageSpan[] {
    const rows = this.statements.all(
      'SELECT span FROM coverage WHERE (?1 IS NULL OR camera = ?1) AND to_ms > ?2 AND from_ms < ?3 ORDER BY camera, from_ms LIMIT ?4',
      ...[cameraId ?? null, fromMs, toMs, limit],
    )
    return rows.map(({ span }) => JSON.parse(columnText(span)) as CoverageSpan)
  }

  /** The end of what is known of each camera. */
  ends(): ReadonlyMap<string, number> {
    const rows = this.statements.all('SELECT camera, max(to_ms) AS end FROM coverage GROUP BY camera')
    return new Map(rows.map(({ camera, end }) => [columnText(camera), Number(end)]))
  }
}
