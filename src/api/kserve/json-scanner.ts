import { ServingError } from '../../tensors/serving-error.js'

/** As Triton. */
export const deepestJson = 100
/** Objects, arrays, members and values outside of tensors; a tensor has an array for each row at most. */
export const mostJsonParts = 1_000_000
/** Elements of tensors, all together: 16 million. */
export const mostJsonValues = 2 ** 24
/** The exact decimal form of a double has 1077 characters at most: no program writes a longer one. */
export const mostNumberBytes = 1_100

const [trueWord, falseWord, nullWord] = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]

/** Powers of ten, of which a double holds the first 23 exactly. */
const powers = Array.from({ length: 31 }, (_, exponent) => Number(`1e${exponent}`))
const mostExactPower = 22
/** So many digits are less than 2^53. */
const exactDigits = 15
/** A double that is written as short as may be has 17 at most. */
const mostDigits = 19
/** Splits a double in two halves whose products are exact. */
const splitter = 2 ** 27 + 1

/** Flat arrays are looked for in longer texts only: to ask where a byte comes next costs as much as some hundred bytes. */
const leastFlatBytes = 1_024

/** An array whose elements are read when it is known what they are: its place in the text. */
export class JsonArrayText {
  readonly #values: number | undefined

  /** @param values - commas between its elements, at any depth, and one more; left out where there is neither text nor array in it. */
  constructor(
    readonly bytes: Buffer,
    readonly start: number,
    readonly end: number,
    values?: number,
  ) {
    this.#values = values
  }

  /** No more elements than that are in it, at any depth: where they were not counted, as many as bytes. */
  get mostValues(): number {
    return this.#values ?? this.end - this.start - 1
  }

  /** As many elements as its commas tell. */
  values(): number {
    if (this.#values !== undefined) return this.#values
    let values = 1
    for (let at = this.start; at < this.end; at++) if (this.bytes[at] === 0x2c) values++
    return values
  }
}

/** Tells where a byte comes next. However often it is asked, from ever later places, it looks at each byte once. */
class NextByte {
  #found = -1

  constructor(
    readonly bytes: Buffer,
    readonly byte: number,
  ) {}

  /** The first place from `at` on; behind the last byte where there is none. */
  from(at: number): number {
    if (this.#found >= at) return this.#found
    const found = this.bytes.indexOf(this.byte, at)
    this.#found = found === -1 ? this.bytes.byteLength : found
    return this.#found
  }
}

/**
 * Reads the tokens of JSON out of its bytes, without making a text of the whole. Bounds what may be in it.
 *
 * Bytes stand as numbers in the loops: V8 loads a constant of a module anew for every byte.
 */
export class JsonScanner {
  /** Where the next token begins, or the space before it. */
  at: number
  readonly bytes: Buffer
  #parts = 0
  #values = 0
  /** Where an array ends, and what a flat one has not before that: texts, arrays, objects and their members. */
  #ends: NextByte | undefined
  #notFlat: readonly NextByte[] = []

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
      if (byte === 0x22) break
      if (byte === undefined)
        throw this.error('Missing a closing quotation mark in string.', bytes.byteLength)
      if (byte < 0x20) throw this.error('Invalid escape character in string.', start)
      if (byte === 0x5c) {
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
    const { bytes, at: start } = this
    const flatEnd = this.#flatEnd()
    if (flatEnd !== undefined) {
      this.countPart()
      this.at = flatEnd
      return new JsonArrayText(bytes, start, flatEnd)
    }
    const values = this.#skipArray()
    this.#values += values
    if (this.#values > mostJsonValues) throw tooMany(mostJsonValues, 'values')
    return new JsonArrayText(bytes, start, this.at, values)
  }

  /**
   * Behind an array that has nothing but numbers in it, at a look; `undefined` for others and where values must be counted: all arrays
   * together have no more of them than the text has bytes.
   */
  #flatEnd(): number | undefined {
    const { bytes, at } = this
    if (bytes.byteLength > mostJsonValues || bytes.byteLength - at < leastFlatBytes) return undefined
    if (this.#ends === undefined) {
      this.#ends = new NextByte(bytes, 0x5d)
      this.#notFlat = [...'[{}":'].map((character) => new NextByte(bytes, character.charCodeAt(0)))
    }
    const end = this.#ends.from(at + 1)
    if (end === bytes.byteLength || this.#notFlat.some((next) => next.from(at + 1) < end)) return undefined
    return end + 1
  }

  /** Moves past an array. @returns its commas, and one more */
  #skipArray(): number {
    const { bytes } = this
    let depth = 0
    let values = 1
    do {
      const byte = bytes[this.at]
      if (byte === 0x22) {
        this.skipString()
        continue
      }
      this.at++
      if (byte === 0x2c) values++
      else if (byte === 0x5b || byte === 0x7b) {
        if (++depth > deepestJson) throw tooDeep()
        this.countPart()
      } else if (byte === 0x5d || byte === 0x7d) depth--
      else if (byte === 0x3a) this.countPart()
      else if (byte === undefined) throw this.error('Missing a comma or ] after a value.', bytes.byteLength)
    } while (depth > 0)
    return values
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
    let byte = bytes[at] ?? 0
    const negative = byte === 0x2d
    if (negative) byte = bytes[++at] ?? 0
    // The first 15 digits, and those behind them.
    let mantissa = 0
    let rest = 0
    let digits = 0
    let exponent = 0
    if (byte === 0x30) byte = bytes[++at] ?? 0
    else if (byte > 0x30 && byte <= 0x39) {
      do {
        if (digits < exactDigits) mantissa = mantissa * 10 + (byte - 0x30)
        else rest = rest * 10 + (byte - 0x30)
        digits++
        byte = bytes[++at] ?? 0
      } while (byte >= 0x30 && byte <= 0x39)
    } else return this.#notFinite()
    let whole = true
    if (byte === 0x2e) {
      const first = at + 1
      let end = first
      let digit = bytes[end] ?? 0
      while (digit >= 0x30 && digit <= 0x39) {
        if (digits < exactDigits) mantissa = mantissa * 10 + (digit - 0x30)
        else rest = rest * 10 + (digit - 0x30)
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
    if (byte === 0x65 || byte === 0x45) {
      let end = at + 1
      const sign = bytes[end]
      if (sign === 0x2d || sign === 0x2b) end++
      const first = end
      let written = 0
      let digit = bytes[end] ?? 0
      while (digit >= 0x30 && digit <= 0x39) {
        written = Math.min(written * 10 + (digit - 0x30), 1_000_000)
        digit = bytes[++end] ?? 0
      }
      if (end > first) {
        whole = false
        exponent += sign === 0x2d ? -written : written
        at = end
      }
    }
    if (at - start > mostNumberBytes)
      throw this.error(`A number has more than ${mostNumberBytes} characters`, start)
    this.at = at
    const value =
      digits <= exactDigits ? scaled(mantissa, exponent) : fraction(mantissa, rest, digits, exponent)
    if (value === undefined) return this.#rounded(start, whole)
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

/** `mantissa * 10^exponent`; `undefined` where a double cannot tell it in one step. */
function scaled(mantissa: number, exponent: number): number | undefined {
  if (exponent === 0) return mantissa
  if (exponent > mostExactPower || exponent < -mostExactPower) return undefined
  return exponent < 0 ? mantissa / powers[-exponent]! : mantissa * powers[exponent]!
}

/**
 * The double nearest to a fraction of more digits than a double holds: `mantissa` is the first of them, `rest` those behind.
 *
 * The mantissa is divided; what that leaves and the rest are a correction, which is known to 50 bits of its own. `undefined` where that
 * is too few to tell two doubles apart, for whole numbers, and for powers that are not exact.
 */
function fraction(mantissa: number, rest: number, digits: number, exponent: number): number | undefined {
  const restDigits = digits - exactDigits
  const power = -exponent - restDigits
  if (digits > mostDigits || power < 0 || power > mostExactPower) return undefined
  const divisor = powers[power]!
  const quotient = mantissa / divisor
  const ofRemainder = remainder(mantissa, quotient, divisor) / divisor
  const ofRest = rest / powers[-exponent]!
  const correction = ofRemainder + ofRest
  const unsure = (Math.abs(ofRemainder) + ofRest) * 2 ** -50
  const nearest = quotient + (correction - unsure)
  return nearest === quotient + (correction + unsure) ? nearest : undefined
}

/** What is left of a division whose quotient was rounded, exactly: the product of the halves, after T. J. Dekker. */
function remainder(dividend: number, quotient: number, divisor: number): number {
  const [a, b] = [quotient * splitter, divisor * splitter]
  const highA = a - (a - quotient)
  const highB = b - (b - divisor)
  const [lowA, lowB] = [quotient - highA, divisor - highB]
  const product = quotient * divisor
  const behind = lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB)
  return dividend - product - behind
}
