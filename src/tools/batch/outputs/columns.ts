import type { BatchLine } from '../../../messages/batch-line.js'

/** One row of a table: a detection, or a picture in which nothing was found, whose columns from `label` on are null. */
export type BatchRow = Readonly<{
  item: string
  file: string
  frame: number | null
  time_ms: number | null
  width_px: number
  height_px: number
  label: string | null
  score: number | null
  x1: number | null
  y1: number | null
  x2: number | null
  y2: number | null
  /** What later steps of an ensemble say, as a JSON object of values by name. */
  attributes: string | null
}>

/** Columns of CSV and Parquet in their order. */
export const rowColumns = [
  'item',
  'file',
  'frame',
  'time_ms',
  'width_px',
  'height_px',
  'label',
  'score',
  'x1',
  'y1',
  'x2',
  'y2',
  'attributes',
] as const satisfies readonly (keyof BatchRow)[]

/** The rows of a picture: one for each detection, or one without any. */
export function tableRows(line: BatchLine): readonly BatchRow[] {
  const picture = {
    item: line.item,
    file: line.file,
    frame: line.frame ?? null,
    time_ms: line.timeMs ?? null,
    width_px: line.widthPx,
    height_px: line.heightPx,
  }
  if (line.detections.length === 0)
    return [
      { ...picture, label: null, score: null, x1: null, y1: null, x2: null, y2: null, attributes: null },
    ]
  return line.detections.map(({ label, score, boxPx, attributes }) => ({
    ...picture,
    label,
    score,
    ...boxPx,
    attributes:
      attributes === undefined
        ? null
        : JSON.stringify(Object.fromEntries(attributes.map(({ name, value }) => [name, value]))),
  }))
}

export const csvHead = rowColumns.join(',')

/** Lines of CSV as RFC 4180 has it, without the last line break. */
export function csvLines(line: BatchLine): string {
  return tableRows(line)
    .map((row) => rowColumns.map((column) => csvField(row[column])).join(','))
    .join('\n')
}

function csvField(value: string | number | null): string {
  if (value === null) return ''
  const text = String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
