import type { ColumnSource } from 'hyparquet-writer'
import { type BatchRow, rowColumns, tableRows } from './columns.js'
import { readBatchLines } from './read-lines.js'

/** Rows that are held, and make one group of the file. */
const groupRows = 50_000

const types = {
  item: 'STRING',
  file: 'STRING',
  frame: 'INT32',
  time_ms: 'DOUBLE',
  width_px: 'INT32',
  height_px: 'INT32',
  label: 'STRING',
  score: 'FLOAT',
  x1: 'FLOAT',
  y1: 'FLOAT',
  x2: 'FLOAT',
  y2: 'FLOAT',
  attributes: 'STRING',
} as const satisfies Record<keyof BatchRow, string>

const always: ReadonlySet<keyof BatchRow> = new Set(['item', 'file', 'width_px', 'height_px'])

/** Writes the rows of kept lines as Parquet, compressed by Snappy. One group of rows is held. @throws what the file system throws */
export async function writeParquet(path: string, lines: string): Promise<void> {
  const { fileWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer')
  const columns = (rows: readonly BatchRow[]): ColumnSource[] =>
    rowColumns.map((name) => ({
      name,
      type: types[name],
      nullable: !always.has(name),
      data: rows.map((row) => row[name]),
    }))
  const writer = new ParquetWriter({
    writer: fileWriter(path),
    schema: schemaFromColumnData({ columnData: columns([]) }),
  })
  let rows: BatchRow[] = []
  const writeGroup = async () => {
    if (rows.length > 0) await writer.write({ columnData: columns(rows), rowGroupSize: groupRows })
    rows = []
  }
  for await (const line of readBatchLines(lines)) {
    rows.push(...tableRows(line))
    if (rows.length >= groupRows) await writeGroup()
  }
  await writeGroup()
  await writer.finish()
}
