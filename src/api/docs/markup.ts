/** HTML that is ready: what comes from elsewhere is escaped in it. */
export class Markup {
  constructor(readonly html: string) {}
}

type Part = Markup | string | number | readonly Markup[] | undefined

/** A template of HTML. Text between its parts is escaped; {@link Markup} and lists of it stand as they are; `undefined` is nothing. */
export function markup(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(texts.reduce((html, text, index) => html + htmlOf(parts[index - 1]) + text))
}

function htmlOf(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Markup) return part.html
  if (typeof part === 'object') return part.map(({ html }) => html).join('')
  return escaped(String(part))
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

/** A sentence of a description, in which names stand between backticks. */
export function prose(text: string | undefined): Markup {
  const pieces = (text ?? '').split('`')
  return new Markup(
    pieces
      .map((piece, index) => (index % 2 === 1 ? `<code>${escaped(piece)}</code>` : escaped(piece)))
      .join(''),
  )
}
