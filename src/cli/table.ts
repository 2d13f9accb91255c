import { stripVTControlCharacters } from 'node:util'

const widthOf = (text: string) => stripVTControlCharacters(text).length

/**
 * Columns of text, two spaces apart, as wide as they need to be; the last one is cut to fit `columns` where that is known.
 * Cells may hold colours.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns?: number,
): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ''))))
  return all.map((row) => line(row, widths, columns)).join('\n')
}

function line(row: readonly string[], widths: readonly number[], columns: number | undefined): string {
  const padded = row.map((cell, column) =>
    column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)),
  )
  const text = padded.join('  ').trimEnd()
  return columns !== undefined && widthOf(text) > columns && widthOf(text) === text.length
    ? `${text.slice(0, columns - 3)}...`
    : text
}
