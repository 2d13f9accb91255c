import { type Literal, parseLiteral, unescapedText } from './python-literal.js'

/** Names by the number of their class; a number that is left out has none. */
export type ClassNames = readonly (string | undefined)[]

/** No model has classes beyond. */
const mostClasses = 65_536

/** Keys under which a map holds names, as in a data.yaml or a configuration of a model. */
const nameKeys = ['names', 'classes', 'labels', 'class_names', 'id2label', 'idx_to_class', 'categories']
/** Keys of the entry of a class, as in COCO's categories. */
const entryNames = ['name', 'label', 'class_name', 'class', 'title']
const entryNumbers = ['id', 'index', 'class_id', 'idx']

/**
 * Names of classes out of a text that an exporter or a person wrote: a map or a list of Python, JSON or YAML in brackets, lines
 * (`0: helmet`, `- helmet`, `helmet`), or names with commas, semicolons, bars or tabs between them.
 *
 * @returns a clause why they are not understood.
 */
export function parseClassNames(text: string): ClassNames | string {
  const plain = text
    .replace(/^\uFEFF/, '')
    .replaceAll('\0', '')
    .trim()
  if (plain === '') return 'there is nothing in it'
  if (/^[[{(]|^[\w.]*\(|^[uUrRbB]{0,2}['"]/.test(plain)) {
    const literal = parseLiteral(plain)
    if (literal !== undefined && literal.kind !== 'text') return namesOf(literal)
    // A text in a text, as JSON of JSON has it.
    if (literal !== undefined && /^[[{(]/.test(literal.text.trim())) return parseClassNames(literal.text)
    if (/^[[{(]/.test(plain)) return 'its brackets or quotes do not close, or something is between them'
  }
  const lines = plain.split(/\r?\n/).filter((line) => !/^\s*(?:#.*|---|\.\.\.)?$/.test(line))
  return lines.length > 1 ? ofLines(lines) : ofLine(lines[0] ?? '')
}

function ofLines(lines: readonly string[]): ClassNames | string {
  const block = blockOf(lines)
  if (block !== undefined) return block.length === 0 ? 'its list is empty' : ofLines(block)
  const inLine = lines
    .map((line) => /^\s*(?:names|class_names)\s*:\s*([[{].*)$/.exec(line)?.[1])
    .find(Boolean)
  if (inLine !== undefined) return parseClassNames(inLine)
  const listed = lines.map((line) => /^\s*-\s+(.*)$/.exec(line)?.[1])
  if (listed.every((name) => name !== undefined)) return listed.map(unquoted)
  return numbered(lines) ?? counted(lines) ?? lines.map((line) => unquoted(line.replace(/,\s*$/, '')))
}

/** What stands below `names:`, in a text that may have other keys. */
function blockOf(lines: readonly string[]): readonly string[] | undefined {
  const at = lines.findIndex((line) => nameKeys.includes(/^\s*(\w+)\s*:\s*$/.exec(line)?.[1] ?? ''))
  if (at < 0) return undefined
  const below = lines.slice(at + 1)
  const end = below.findIndex((line) => !/^[\s-]/.test(line))
  return end <= 0 ? below : below.slice(0, end)
}

function ofLine(line: string): ClassNames | string {
  const named = /^\s*(\w+)\s*:\s*(\S.*)$/.exec(line)
  if (named !== null && nameKeys.includes(named[1]!)) return parseClassNames(named[2]!)
  const separator = [',', ';', '|', '\t'].find((each) => line.includes(each))
  const parts = separator === undefined ? [line] : apart(line, separator)
  while (parts.length > 1 && parts.at(-1)?.trim() === '') parts.pop()
  const numbers = numbered(parts) ?? counted(parts)
  if (numbers !== undefined) return numbers
  if (parts.length === 1 && /^[\d.\s]*$/.test(line)) return 'it is a number'
  return parts.map(unquoted)
}

/** Parts of a line; a separator in quotes is none. */
function apart(line: string, separator: string): string[] {
  const parts = line.match(/(?:[^'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")+?/g) ?? [line]
  const out = ['']
  for (const part of parts.join('') === line ? parts : [...line])
    if (part === separator) out.push('')
    else out[out.length - 1] += part
  return out
}

/** `0: helmet`, `0 = helmet`, or `0 helmet` where the numbers count up; `undefined` where the parts are otherwise. */
function numbered(parts: readonly string[]): ClassNames | string | undefined {
  const pairs = parts.map((part) => /^\s*['"]?(\d{1,6})['"]?\s*(\s|[:=,;|])\s*(.*?)\s*,?\s*$/.exec(part))
  if (pairs.some((pair) => pair === null)) return undefined
  const found = pairs.map((pair) => ({
    number: Number(pair![1]),
    sign: pair![2]!,
    name: unquoted(pair![3]!),
  }))
  const start = found[0]!.number
  const counts = found.every(({ number }, index) => number === start + index) && start <= 1
  if (!counts && found.some(({ sign }) => !/[:=]/.test(sign))) return undefined
  return byNumber(found)
}

/** `helmet: 0`: the number behind the name. */
function counted(parts: readonly string[]): ClassNames | string | undefined {
  const pairs = parts.map((part) => /^(.*\D)\s*[:=]\s*(\d{1,6})\s*,?\s*$/.exec(part))
  if (pairs.some((pair) => pair === null)) return undefined
  return byNumber(pairs.map((pair) => ({ number: Number(pair![2]), name: unquoted(pair![1]!) })))
}

function unquoted(text: string): string {
  const bare = text.trim()
  const [, quote, body = ''] = /^(['"])(.*)\1$/s.exec(bare) ?? []
  return quote === undefined ? bare : unescapedText(body.replaceAll(quote + quote, quote)).trim()
}

function namesOf(literal: Literal): ClassNames | string {
  switch (literal.kind) {
    case 'text':
      return 'it is neither a list nor a map'
    case 'list':
      return ofList(literal)
    case 'map':
      return ofMap(literal)
    default:
      return literal satisfies never
  }
}

function ofList({ items, isSet }: Literal & { kind: 'list' }): ClassNames | string {
  if (isSet) return 'it is a set, whose order says nothing'
  const pairs = items.map(pairOf)
  if (items.length > 0 && pairs.every((pair) => pair !== undefined)) return byNumber(pairs)
  const names = items.map(nameOf)
  const other = names.findIndex((name) => name === undefined)
  return other < 0 ? names : `its item ${other + 1} is no name`
}

function ofMap({ entries }: Literal & { kind: 'map' }): ClassNames | string {
  const pairs = entries.map(([key, value]) => ({ key: numberOf(key), name: nameOf(value), value }))
  if (pairs.every(({ key, name }) => key !== undefined && name !== undefined))
    return byNumber(pairs.map(({ key, name }) => ({ number: key!, name: name! })))
  if (entries.every(([key, value]) => numberOf(key) === undefined && numberOf(value) !== undefined))
    return byNumber(entries.map(([key, value]) => ({ number: numberOf(value)!, name: nameOf(key) ?? '' })))
  const inside = entries.find(
    ([key, value]) => key.kind === 'text' && nameKeys.includes(key.text) && value.kind !== 'text',
  )
  if (inside !== undefined) return namesOf(inside[1])
  const other = entries.find(([key, value]) => numberOf(key) === undefined || nameOf(value) === undefined)
  if (other !== undefined && numberOf(other[0]) !== undefined)
    return `what it has for number ${numberOf(other[0])} is no name`
  const shown = other?.[0].kind === 'text' ? `"${other[0].text}"` : 'one of its keys'
  return `${shown} is neither the number of a class nor has one`
}

type Numbered = Readonly<{ number: number; name: string }>

/** `(0, 'helmet')`, or `{"id": 0, "name": "helmet"}`. */
function pairOf(item: Literal): Numbered | undefined {
  if (item.kind === 'list' && item.items.length === 2) {
    const [first, second] = item.items as [Literal, Literal]
    const number = first.kind === 'text' && !first.quoted ? numberOf(first) : undefined
    const name = nameOf(second)
    return number === undefined || name === undefined ? undefined : { number, name }
  }
  const id = item.kind === 'map' ? valueAt(item, entryNumbers) : undefined
  const number = id === undefined ? undefined : numberOf(id)
  const name = nameOf(item)
  return number === undefined || name === undefined ? undefined : { number, name }
}

function nameOf(literal: Literal): string | undefined {
  switch (literal.kind) {
    case 'text':
      return !literal.quoted && /^(?:None|null|~)$/.test(literal.text) ? '' : literal.text.trim()
    case 'list':
      return literal.items.length === 1 && !literal.isSet ? nameOf(literal.items[0]!) : undefined
    case 'map': {
      const name = valueAt(literal, entryNames)
      return name?.kind === 'text' ? nameOf(name) : undefined
    }
    default:
      return literal satisfies never
  }
}

function valueAt({ entries }: Literal & { kind: 'map' }, keys: readonly string[]): Literal | undefined {
  return entries.find(([key]) => key.kind === 'text' && keys.includes(key.text))?.[1]
}

function numberOf(literal: Literal): number | undefined {
  return literal.kind === 'text' && /^\s*\d{1,9}\s*$/.test(literal.text) ? Number(literal.text) : undefined
}

function byNumber(pairs: readonly Numbered[]): ClassNames | string {
  const names: string[] = []
  for (const { number, name } of pairs) {
    if (number >= mostClasses) return `it has the number ${number}`
    if (names[number] !== undefined && names[number] !== name) return `it has number ${number} twice`
    names[number] = name
  }
  return names
}
