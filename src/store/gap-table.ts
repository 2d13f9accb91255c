import type { Gap } from './record.js'
import { columnText, type Statements } from './statements.js'

export const gapTable = `
  CREATE TABLE gaps (
    sink TEXT NOT NULL,
    camera TEXT NOT NULL,
    reason TEXT NOT NULL,
    dropped INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    to_ms INTEGER NOT NULL,
    PRIMARY KEY (sink, camera, reason)
  ) STRICT;
`

/** What sinks did not get and nobody was told of yet. */
export class GapTable {
  constructor(readonly statements: Statements) {}

  all(): readonly Gap[] {
    return this.statements.all('SELECT * FROM gaps').map((row) => ({
      sink: columnText(row['sink']),
      cameraId: columnText(row['camera']),
      reason: columnText(row['reason']) as Gap['reason'],
      dropped: Number(row['dropped']),
      fromMs: Number(row['from_ms']),
      toMs: Number(row['to_ms']),
    }))
  }

  add({ sink, cameraId, reason, dropped, fromMs, toMs }: Gap): void {
    this.statements.run(
      `INSERT INTO gaps VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET dropped = dropped + excluded.dropped,
        from_ms = min(from_ms, excluded.from_ms), to_ms = max(to_ms, excluded.to_ms)`,
      ...[sink, cameraId, reason, dropped, fromMs, toMs],
    )
  }

  /** A record that tells it is in the file. */
  told({ sink, cameraId, reason, dropped }: Gap): void {
    const which = 'WHERE sink = ? AND camera = ? AND reason = ?'
    this.statements.run(
      `UPDATE gaps SET dropped = dropped - ? ${which}`,
      ...[dropped, sink, cameraId, reason],
    )
    this.statements.run(`DELETE FROM gaps ${which} AND dropped <= 0`, sink, cameraId, reason)
  }

  /** The sink is gone. */
  forget(sink: string): void {
    this.statements.run('DELETE FROM gaps WHERE sink = ?', sink)
  }
}
