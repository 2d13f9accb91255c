/** Text as it stands in HTML, in an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A cell of a table: text that is escaped, a number, or HTML that is taken as it is. */
export type HtmlCell = string | number | Readonly<{ html: string }>

/** HTML of a cell. */
export function cellHtml(cell: HtmlCell): string {
  if (typeof cell === 'object') return cell.html
  return escapeHtml(typeof cell === 'number' ? numberText(cell) : cell)
}

/** Few digits, as people read them: `1,234`, `12.3`, `0.123`. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return ''
  const size = Math.abs(value)
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** A table; columns whose cells are all numbers stand to the right. */
export function htmlTable(head: readonly string[], rows: readonly (readonly HtmlCell[])[]): string {
  const numeric = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  )
  const tag = (name: string, column: number, html: string) =>
    `<${name}${numeric[column] === true ? ' class="number"' : ''}>${html}</${name}>`
  const headRow = head.map((text, column) => tag('th', column, escapeHtml(text))).join('')
  const body = rows.map(
    (row) => `<tr>${row.map((cell, column) => tag('td', column, cellHtml(cell))).join('')}</tr>`,
  )
  return `<div class="wide"><table><thead><tr>${headRow}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`
}

/** A list of facts: what, and how much. */
export function htmlFacts(facts: readonly (readonly [name: string, value: HtmlCell])[]): string {
  return `<dl>${facts.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${cellHtml(value)}</dd>`).join('\n')}</dl>`
}
