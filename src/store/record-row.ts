import { crc32 } from 'node:zlib'
import type { SQLInputValue } from 'node:sqlite'
import type { PlacedRecord } from './record.js'
import { blobOf, columnText, type Row } from './statements.js'
import { RecordDamagedError } from './store-trouble.js'

export const recordColumns = 'position, id, type, camera, seq, time_ms, sink, value, crc'

/** A record as the file has it, in the order of {@link recordColumns}. */
export function rowOf(record: PlacedRecord): SQLInputValue[] {
  const { position, id, type, cameraId, seq, timeMs, sink, value } = record
  return [
    position,
    id,
    type,
    cameraId,
    seq,
    Math.round(timeMs),
    sink ?? null,
    value,
    crcOf(position, id, value),
  ]
}

/** @throws RecordDamagedError */
export function recordOf(row: Row): PlacedRecord {
  const { sink } = row
  return {
    position: Number(row['position']),
    id: columnText(row['id']),
    type: columnText(row['type']) as PlacedRecord['type'],
    cameraId: columnText(row['camera']),
    seq: Number(row['seq']),
    timeMs: Number(row['time_ms']),
    value: checkedValue(row),
    ...(typeof sink === 'string' && { sink }),
  }
}

/** The value of a row with its place, its id and its sum. @throws RecordDamagedError */
export function checkedValue(row: Row): Uint8Array {
  const position = Number(row['position'])
  const value = blobOf(row['value'])
  if (!isAsWritten(position, columnText(row['id']), value, row['crc'])) throw new RecordDamagedError(position)
  return value
}

/** @param crc - none in a row of a file of form 1 */
export function isAsWritten(position: number, id: string, value: Uint8Array, crc: unknown): boolean {
  return typeof crc !== 'number' || crc === crcOf(position, id, value)
}

function crcOf(position: number, id: string, value: Uint8Array): number {
  return crc32(value, crc32(`${position} ${id}`))
}
