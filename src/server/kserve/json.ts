import { ServingError } from '../../serving/serving-error.js'
import { checkJsonSize } from './json-size.js'

/** As Triton. */
export const deepestJson = 100

/**
 * JSON as Triton's clients write it: whole numbers past 2^53 as bigint, and `NaN` and `Infinity` are numbers.
 *
 * @throws ServingError `INVALID_ARG`
 */
export function parseJson(bytes: Uint8Array): unknown {
  checkJsonSize(bytes)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  if (!/\d{16}/.test(text)) {
    try {
      return JSON.parse(text) as unknown
    } catch {
      // The reader below takes more, and tells the place of what is wrong.
    }
  }
  return new JsonReader(text).read()
}

export type JsonObject = Readonly<Record<string, unknown>>

/** `undefined` for anything else; own properties only, whatever their names. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

/** A property the JSON really has: `constructor` and its like are none. */
export function member(object: JsonObject | undefined, name: string): unknown {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined
}

class JsonReader {
  #at = 0

  constructor(readonly text: string) {}

  read(): unknown {
    const value = this.#value(0)
    this.#space()
    if (this.#at < this.text.length)
      throw this.#error('The document root must not be followed by other values.')
    return value
  }

  #value(depth: number): unknown {
    if (depth > deepestJson)
      throw new ServingError(
        'INVALID_ARG',
        `JSON nesting depth exceeds maximum allowed limit (${deepestJson})`,
      )
    this.#space()
    const first = this.text[this.#at]
    if (first === undefined) throw this.#error('The document is empty.')
    if (first === '{') return this.#object(depth)
    if (first === '[') return this.#array(depth)
    if (first === '"') return this.#string()
    const word = this.#match(/true|false|null/y)
    return word === undefined ? this.#number() : (JSON.parse(word) as unknown)
  }

  #object(depth: number): Record<string, unknown> {
    const entries: [string, unknown][] = []
    this.#list('}', () => {
      this.#space()
      if (this.text[this.#at] !== '"') throw this.#error('Missing a name for object member.')
      const name = this.#string()
      this.#space()
      if (this.text[this.#at] !== ':') throw this.#error('Missing a colon after a name of object member.')
      this.#at++
      entries.push([name, this.#value(depth + 1)])
    })
    return Object.fromEntries(entries)
  }

  #array(depth: number): unknown[] {
    const values: unknown[] = []
    this.#list(']', () => values.push(this.#value(depth + 1)))
    return values
  }

  #list(end: string, item: () => void): void {
    this.#at++
    this.#space()
    if (this.text[this.#at] === end) return void this.#at++
    for (;;) {
      item()
      this.#space()
      const next = this.text[this.#at]
      if (next !== ',' && next !== end) throw this.#error(`Missing a comma or ${end} after a value.`)
      this.#at++
      if (next === end) return
    }
  }

  #string(): string {
    const start = this.#at
    do {
      this.#at = this.text.indexOf('"', this.#at + 1)
      if (this.#at < 0) throw this.#error('Missing a closing quotation mark in string.', this.text.length)
    } while (this.#escaped(start))
    this.#at++
    try {
      return JSON.parse(this.text.slice(start, this.#at)) as string
    } catch {
      throw this.#error('Invalid escape character in string.', start)
    }
  }

  /** Whether an odd number of backslashes stands before the quotation mark. */
  #escaped(start: number): boolean {
    let at = this.#at - 1
    while (at > start && this.text[at] === '\\') at--
    return (this.#at - 1 - at) % 2 === 1
  }

  #number(): number | bigint {
    const digits = this.#match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y)
    if (digits === undefined) return this.#notFinite()
    const value = Number(digits)
    return Number.isSafeInteger(value) || !/^-?\d+$/.test(digits) ? value : BigInt(digits)
  }

  #notFinite(): number {
    const word = this.#match(/NaN|-?Inf(?:inity)?/y)
    if (word === undefined) throw this.#error('Invalid value.')
    return word === 'NaN' ? NaN : word.startsWith('-') ? -Infinity : Infinity
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #space(): void {
    while (this.#at < this.text.length && ' \t\n\r'.includes(this.text[this.#at] ?? '')) this.#at++
  }

  #error(problem: string, at = this.#at): ServingError {
    return new ServingError('INVALID_ARG', `failed to parse the request JSON buffer: ${problem} at ${at}`)
  }
}
