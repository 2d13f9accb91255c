import type { DatabaseSync } from 'node:sqlite'
import { eventTypes } from '../messages/cloud-event.js'
import { ageTable } from './record-ages.js'
import { coverageTable } from './coverage-table.js'
import { gapTable } from './gap-table.js'
import { StoreVersionError } from './store-trouble.js'

/** The order is that of the pages in which the tables begin: `salvage/` looks for them there in a file that does not say so any more. */
const schema = `
  CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    camera TEXT NOT NULL,
    seq INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    sink TEXT,
    value BLOB NOT NULL,
    crc INTEGER
  ) STRICT;
  CREATE INDEX results ON records (time_ms, camera, seq) WHERE type = '${eventTypes.detections}';
  CREATE TABLE runs (epoch TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  CREATE TABLE sinks (sink TEXT PRIMARY KEY, settled INTEGER NOT NULL) STRICT;
  ${gapTable}
  CREATE TABLE forgotten (camera TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;
  ${coverageTable}
  ${ageTable}
`

/** From form 1: records had no sum of their bytes and no age, and what was deleted had one reason. */
const fromForm1 = `
  ALTER TABLE records ADD COLUMN crc INTEGER;
  DROP INDEX events;
  DROP INDEX coverage_by_end;
  ALTER TABLE gaps RENAME TO gaps_of_form_1;
  ${gapTable}
  INSERT INTO gaps SELECT sink, camera, 'retention', dropped, from_ms, to_ms FROM gaps_of_form_1;
  DROP TABLE gaps_of_form_1;
  ${ageTable}
`

/** Of the file, in its header. A file of a later one is not touched. */
const schemaVersion = 2

/** Bytes: a commit writes whole pages, and a result takes few of these (`test/bench/outbox-cost.bench.ts`). Of new files alone. */
export const pageBytes = 1_024

/** Makes the tables of a new file, and those that an older one lacks. @throws what SQLite throws; StoreVersionError */
export function prepareSchema(db: DatabaseSync, path: string): void {
  const version = Number(db.prepare('SELECT user_version AS n FROM pragma_user_version').get()?.['n'])
  if (version === schemaVersion) return
  if (version > schemaVersion) throw new StoreVersionError(path, version)
  const change = version === 0 ? schema : fromForm1
  db.exec(`BEGIN IMMEDIATE; ${change} PRAGMA user_version = ${schemaVersion}; COMMIT`)
}
