import { ServingError } from '../../tensors/serving-error.js'

/** As Triton. */
export const deepestJson = 100
/** Objects, arrays, members and values outside of tensors; a tensor has an array for each row at most. */
export const mostJsonParts = 1_000_000
/** Elements of tensors, all together: 16 million. */
export const mostJsonValues = 2 ** 24
/** The exact decimal form of a double has 1077 characters at most: no program writes a longer one. */
export const mostNumberBytes = 1_100

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [bracket, bracketEnd, brace, braceEnd] = [0x5b, 0x5d, 0x7b, 0x7d]
const [zero, nine, minus, plus, point, smallE, largeE] = [0x30, 0x39, 0x2d, 0x2b, 0x2e, 0x65, 0x45]

const [trueWord, falseWord, nullWord] = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]

/** Powers of ten that a double holds exactly. */
const powers = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent)
/** So many digits are less than 2^53. */
const exactDigits = 15

/** An array whose elements are read when it is known what they are: its place in the text. */
export class JsonArrayText {
  constructor(
    readonly bytes: Buffer,
    readonly start: number,
    readonly end: number,
    /** No more elements than that are in it, at any depth. */
    readonly mostValues: number,
  ) {}
}

/** Reads the tokens of JSON out of its bytes, each once, without making a text of the whole. Bounds what may be in it. */
export class JsonScanner {
  /** Where the next token begins, or the space before it. */
  at: number
  readonly bytes: Buffer
  #parts = 0
  #values = 0

  constructor(bytes: Uint8Array, at = 0, end = bytes.byteLength) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, end)
    this.at = at
  }

  /** Moves past space. @returns the byte there; -1 at the end */
  next(): number {
    const { bytes } = this
    let byte = bytes[this.at]
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++this.at]
    return byte ?? -1
  }

  /** @throws ServingError `INVALID_ARG` when there are too many */
  countPart(): void {
    if (++this.#parts > mostJsonParts) throw tooMany(mostJsonParts, 'objects, arrays and members')
  }

  /**
   * Moves past a string.
   *
   * @returns whether there are escapes in it
   * @throws ServingError
   */
  skipString(): boolean {
    const { bytes } = this
    const start = this.at
    let at = start + 1
    let escaped = false
    for (;;) {
      const byte = bytes[at]
      if (byte === quote) break
      if (byte === undefined)
        throw this.error('Missing a closing quotation mark in string.', bytes.byteLength)
      if (byte < 0x20) throw this.error('Invalid escape character in string.', start)
      if (byte === backslash) {
        escaped = true
        at++
      }
      at++
    }
    this.at = at + 1
    return escaped
  }

  string(): string {
    const start = this.at
    const escaped = this.skipString()
    if (!escaped) return this.bytes.toString('utf8', start + 1, this.at - 1)
    try {
      return JSON.parse(this.bytes.toString('utf8', start, this.at)) as string
    } catch {
      throw this.error('Invalid escape character in string.', start)
    }
  }

  /** Moves past an array whose elements are read later. What is wrong inside of it is found then. */
  arrayText(): JsonArrayText {
    const { bytes } = this
    const start = this.at
    let depth = 0
    let values = 1
    do {
      const byte = bytes[this.at]
      if (byte === quote) {
        this.skipString()
        continue
      }
      this.at++
      if (byte === comma) values++
      else if (byte === bracket || byte === brace) {
        if (++depth > deepestJson) throw tooDeep()
        this.countPart()
      } else if (byte === bracketEnd || byte === braceEnd) depth--
      else if (byte === colon) this.countPart()
      else if (byte === undefined) throw this.error('Missing a comma or ] after a value.', bytes.byteLength)
    } while (depth > 0)
    this.#values += values
    if (this.#values > mostJsonValues) throw tooMany(mostJsonValues, 'values')
    return new JsonArrayText(bytes, start, this.at, values)
  }

  /**
   * A number, a bigint for whole numbers that a number cannot hold. `NaN` and `Infinity` are numbers.
   *
   * @throws ServingError for anything else, and for more than {@link mostNumberBytes}
   */
  number(): number | bigint {
    const { bytes } = this
    const start = this.at
    let at = start
    const negative = bytes[at] === minus
    if (negative) at++
    let mantissa = 0
    let digits = 0
    let exponent = 0
    let byte = bytes[at] ?? 0
    if (byte === zero) byte = bytes[++at] ?? 0
    else if (byte > zero && byte <= nine) {
      do {
        mantissa = mantissa * 10 + (byte - zero)
        digits++
        byte = bytes[++at] ?? 0
      } while (byte >= zero && byte <= nine)
    } else return this.#notFinite()
    let whole = true
    if (byte === point) {
      const first = at + 1
      let end = first
      let digit = bytes[end] ?? 0
      while (digit >= zero && digit <= nine) {
        mantissa = mantissa * 10 + (digit - zero)
        if (mantissa !== 0) digits++
        digit = bytes[++end] ?? 0
      }
      if (end > first) {
        whole = false
        exponent = first - end
        at = end
        byte = digit
      }
    }
    if (byte === smallE || byte === largeE) {
      let end = at + 1
      const sign = bytes[end]
      if (sign === minus || sign === plus) end++
      const first = end
      let written = 0
      let digit = bytes[end] ?? 0
      while (digit >= zero && digit <= nine) {
        written = Math.min(written * 10 + (digit - zero), 1_000_000)
        digit = bytes[++end] ?? 0
      }
      if (end > first) {
        whole = false
        exponent += sign === minus ? -written : written
        at = end
      }
    }
    if (at - start > mostNumberBytes)
      throw this.error(`A number has more than ${mostNumberBytes} characters`, start)
    this.at = at
    if (digits > exactDigits || exponent > 22 || exponent < -22) return this.#rounded(start, whole)
    const value = exponent < 0 ? mantissa / powers[-exponent]! : mantissa * powers[exponent]!
    return negative ? -value : value
  }

  /** What cannot be computed exactly here. */
  #rounded(start: number, whole: boolean): number | bigint {
    const text = this.bytes.toString('latin1', start, this.at)
    const value = Number(text)
    return whole && !Number.isSafeInteger(value) ? BigInt(text) : value
  }

  #notFinite(): number {
    const word = this.#word(/^(?:NaN|-?Inf(?:inity)?)/)
    if (word === undefined) throw this.error('Invalid value.')
    return word === 'NaN' ? NaN : word.startsWith('-') ? -Infinity : Infinity
  }

  /** @throws ServingError when it is none of the three */
  literal(): boolean | null {
    if (this.#takes(trueWord)) return true
    if (this.#takes(falseWord)) return false
    if (this.#takes(nullWord)) return null
    throw this.error('Invalid value.')
  }

  #takes(word: Buffer): boolean {
    for (let i = 0; i < word.byteLength; i++) if (this.bytes[this.at + i] !== word[i]) return false
    this.at += word.byteLength
    return true
  }

  #word(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.bytes.toString('latin1', this.at, this.at + 9))?.[0]
    if (found !== undefined) this.at += found.length
    return found
  }

  error(problem: string, at = this.at): ServingError {
    return new ServingError('INVALID_ARG', `failed to parse the request JSON buffer: ${problem} at ${at}`)
  }
}

export function tooDeep(): ServingError {
  return new ServingError('INVALID_ARG', `JSON nesting depth exceeds maximum allowed limit (${deepestJson})`)
}

function tooMany(most: number, of: string): ServingError {
  return new ServingError('INVALID_ARG', `request JSON has more than ${most} ${of}`)
}
