/** A parameter of a challenge: `value` is what is meant, `written` what stood between the quotes. One character a byte, as in a header. */
export type ChallengeField = Readonly<{ value: string; written: string }>

/** A way to log in that a server offers (RFC 7235, 2.1). The scheme and the names of its fields are in lower case. */
export type Challenge = Readonly<{ scheme: string; fields: ReadonlyMap<string, ChallengeField> }>

/** `name=value`; without quotes a value goes on to a comma, or to where the next one begins. */
const parameter =
  /([\w*-]+)\s*=\s*(?:"((?:\\.|[^\\])*?)"(?=\s*[,;]|\s*$|\s+[\w*-]+\s*=)|"?([^",;]*?)"?(?=\s*[,;]|\s*$|\s+[\w*-]+\s*=))/gs

/** What `Negotiate` has in place of parameters. */
const token = /^[\w.~+/-]+=*$/
/** What cameras send has some hundred characters. */
const mostCharacters = 4096

/**
 * The challenges of a `WWW-Authenticate` header, in the order they stand. It may hold several, and cameras leave out commas, quotes and the
 * end of a quote; a comma or the name of a scheme inside of quotes is text.
 */
export function challengesIn(value: string): Challenge[] {
  const found: { scheme: string; fields: Map<string, ChallengeField> }[] = []
  for (const piece of atCommas(value.slice(0, mostCharacters))) {
    // Only a parameter has "=" behind its first word.
    const [, scheme, rest = ''] = /^([^\s=,;"]+)(?:\s+(?!=)(.*))?$/s.exec(piece) ?? []
    if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), fields: new Map() })
    const written = scheme === undefined ? piece : token.test(rest) ? '' : rest
    for (const [, name = '', quoted, bare = ''] of written.matchAll(parameter))
      found.at(-1)?.fields.set(name.toLowerCase(), {
        value: quoted?.replace(/\\(["\\])/g, '$1') ?? bare,
        written: quoted ?? quotable(bare),
      })
  }
  return found
}

/** A text as it stands between quotes. */
export function quotable(text: string): string {
  return text.replace(/["\\]/g, '\\$&')
}

/** Cut at the commas that no quotes hold; at every one where a quote has no end. */
function atCommas(value: string): string[] {
  const quotes = [...value.matchAll(/\\.|"/gs)].filter(([mark]) => mark === '"').length
  const pieces = quotes % 2 === 0 ? (value.match(/(?:"(?:\\.|[^"\\])*"|[^",])+/gs) ?? []) : value.split(',')
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== '')
}
