/**
 * What stands in a text of Python, JSON or YAML in brackets: `{0: 'a'}`, `["a"]`, `(a, b)`, `OrderedDict([(0, 'a')])`.
 *
 * - `text`: a scalar; one in quotes may be any text, one without may stand for something else (`None`, `12`)
 * - `list`: also a tuple; of a set the order says nothing
 */
export type Literal =
  | Readonly<{ kind: 'text'; text: string; quoted: boolean }>
  | Readonly<{ kind: 'list'; items: readonly Literal[]; isSet: boolean }>
  | Readonly<{ kind: 'map'; entries: readonly (readonly [key: Literal, value: Literal])[] }>

/** Deeper is nothing that anyone wrote by hand or by an exporter. */
const deepest = 8

const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']', '(': ')' }

/** @returns `undefined` where the text is no such literal, or has more behind it. */
export function parseLiteral(text: string): Literal | undefined {
  const reader = new LiteralReader(text)
  try {
    const literal = reader.value('', 0)
    return reader.isAtEnd ? literal : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

class LiteralReader {
  #at = 0

  constructor(readonly text: string) {}

  get isAtEnd(): boolean {
    this.#skipSpace()
    return this.#at === this.text.length
  }

  /** @param closer - of the brackets around it: a word without quotes ends there. @throws SyntaxError */
  value(closer: string, depth: number, isKey = false): Literal {
    if (depth > deepest) throw new SyntaxError('too deep')
    this.#skipSpace()
    const opened = this.#peek()
    if (opened in closers) {
      this.#at += 1
      return this.#inBrackets(closers[opened]!, depth + 1)
    }
    const quoted = this.#match(/[uUrRbB]{0,2}(?=['"])/y)
    if (quoted !== undefined) return { kind: 'text', text: this.#quoted(quoted.toLowerCase()), quoted: true }
    const called = this.#match(/[A-Za-z_][\w.]*(?=\()/y)
    if (called === undefined) return { kind: 'text', text: this.#word(closer, isKey), quoted: false }
    this.#at += 1
    return ofCall(this.#inBrackets(')', depth + 1))
  }

  #inBrackets(closer: string, depth: number): Literal {
    const items: Literal[] = []
    const entries: (readonly [Literal, Literal])[] = []
    for (;;) {
      this.#skipSpace()
      if (this.#take(closer)) break
      // `dtype='<U6'` in a call.
      if (closer === ')') this.#match(/[A-Za-z_]\w*\s*=(?!=)/y)
      const first = this.value(closer, depth, closer === '}')
      this.#skipSpace()
      if (closer === '}' && this.#take(':')) entries.push([first, this.value(closer, depth)])
      else items.push(first)
      this.#skipSpace()
      if (!this.#take(',') && this.#peek() !== closer) throw new SyntaxError('no comma')
    }
    if (entries.length > 0 && items.length > 0) throw new SyntaxError('neither map nor list')
    if (closer === '}' && items.length === 0) return { kind: 'map', entries }
    return { kind: 'list', items, isSet: closer === '}' }
  }

  #word(closer: string, isKey: boolean): string {
    const from = this.#at
    const isEnd = (letter: string) => letter === ',' || letter === closer || (isKey && letter === ':')
    while (this.#at < this.text.length && !isEnd(this.#peek())) this.#at += 1
    const word = this.text.slice(from, this.#at).trim()
    if (word === '') throw new SyntaxError('nothing')
    return word
  }

  #quoted(prefix: string): string {
    const quote = this.#peek()
    const from = ++this.#at
    for (; this.#at < this.text.length; this.#at += 1) {
      const letter = this.#peek()
      if (letter === '\\') this.#at += 1
      // In YAML a quote that is doubled is one of the text.
      else if (letter === quote && this.text[this.#at + 1] === quote && this.#at > from) this.#at += 1
      else if (letter === quote) break
    }
    if (this.#peek() !== quote) throw new SyntaxError('no closing quote')
    const body = this.text.slice(from, this.#at).replaceAll(quote + quote, quote)
    this.#at += 1
    return prefix.includes('r') ? body : unescapedText(body, prefix.includes('b'))
  }

  #skipSpace(): void {
    this.#match(/\s+/y)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.text) ?? []
    if (found !== undefined) this.#at += found.length
    return found
  }

  #take(letter: string): boolean {
    const isThere = this.#peek() === letter
    if (isThere) this.#at += 1
    return isThere
  }

  #peek(): string {
    return this.text[this.#at] ?? ''
  }
}

/** `OrderedDict([...])`, `array([...], dtype=...)`, `defaultdict(str, {...})`: what it holds. @throws SyntaxError */
function ofCall(call: Literal): Literal {
  const args = call.kind === 'list' ? call.items : []
  const held = args.find(({ kind }) => kind !== 'text') ?? args[0]
  if (held === undefined) throw new SyntaxError('nothing in it')
  return held
}

const letters: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\u0007',
  '\n': '',
}

/**
 * A text in quotes as it is meant, with the escapes of Python and JSON. What is no escape stays as it is, as in Python.
 *
 * @param asBytes - of `b'...'`: escapes are bytes of UTF-8.
 */
export function unescapedText(body: string, asBytes = false): string {
  const text = body.replace(
    /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{1,3})|([\s\S]))/g,
    (whole, four?: string, eight?: string, two?: string, octal?: string, letter?: string) => {
      const hex = four ?? eight ?? two
      if (hex !== undefined) return codePoint(Number.parseInt(hex, 16)) ?? whole
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
      return letters[letter!] ?? (/['"\\/]/.test(letter!) ? letter! : whole)
    },
  )
  return asBytes ? Buffer.from(text, 'latin1').toString('utf8') : text
}

/** Halves of a pair, as JSON writes what is beyond 16 bits, come one after another. */
function codePoint(value: number): string | undefined {
  return value <= 0x10ffff ? String.fromCodePoint(value) : undefined
}
