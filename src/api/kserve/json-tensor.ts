import { isUtf8 } from 'node:buffer'
import { type Datatype, isNumberDatatype, type NumberDatatype } from '../../tensors/element-type.js'
import { elementsOf } from '../../tensors/elements.js'
import { byteCount, checkedCount } from '../../tensors/tensor-check.js'
import { ServingError } from '../../tensors/serving-error.js'
import { JsonArrayText } from './json-scanner.js'
import { JsonReader } from './json.js'

const [quote, bracketEnd, smallT, smallF] = [0x22, 0x5d, 0x74, 0x66]

/** A surrogate that stands alone. */
const halfOfPair = /\p{Cs}/u

/** Smallest and largest value of the whole-number types. */
const ranges: Readonly<Partial<Record<Datatype, readonly [bigint, bigint]>>> = {
  UINT8: [0n, 255n],
  UINT16: [0n, 65_535n],
  UINT32: [0n, 4_294_967_295n],
  UINT64: [0n, 2n ** 64n - 1n],
  INT8: [-128n, 127n],
  INT16: [-32_768n, 32_767n],
  INT32: [-(2n ** 31n), 2n ** 31n - 1n],
  INT64: [-(2n ** 63n), 2n ** 63n - 1n],
}

/**
 * The bytes of a tensor from the `data` of a JSON request, flat or nested, read where they stand: no element is kept as a value.
 *
 * @throws ServingError in the words and with the status of Triton
 */
export function bytesOfJson(
  input: string,
  datatype: Datatype,
  shape: readonly number[],
  data: unknown,
): Uint8Array {
  const count = checkedCount(input, shape)
  if (count === 0) return nothing(data)
  if (!(data instanceof JsonArrayText))
    throw new ServingError('INVALID_ARG', "Unable to parse 'data': attempt to access JSON non-array as array")
  if (datatype !== 'BYTES' && !isNumberDatatype(datatype))
    throw new ServingError(
      'INVALID_ARG',
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${input}`,
    )
  const bytes = datatype === 'BYTES' ? 0 : byteCount(input, datatype, count)
  // A shape that is not true cannot ask for more memory than the text takes.
  if (count > data.mostValues) throw wrongShape()
  const reader = new LeafReader(data)
  try {
    return datatype === 'BYTES' ? stringsOf(reader, count) : numbersOf(reader, datatype, bytes)
  } catch (error) {
    // It comes before what else is wrong.
    throw count > data.values() ? wrongShape() : error
  }
}

/** What nobody reads must be JSON all the same. */
function nothing(data: unknown): Uint8Array {
  if (data instanceof JsonArrayText) new JsonReader(data.bytes, data.start, data.end).value(0, 'elsewhere')
  return new Uint8Array(0)
}

/** Goes from leaf to leaf of arrays in arrays. */
class LeafReader extends JsonReader {
  #depth = 0

  constructor({ bytes, start, end }: JsonArrayText) {
    super(bytes, start, end)
    this.next()
    this.#open()
  }

  /** Moves to the next leaf. @returns its first byte; -1 behind the last. @throws ServingError */
  leaf(isFirst: boolean): number {
    if (!isFirst && this.#depth > 0) {
      const { bytes, at } = this
      const behindComma = bytes[at] === 0x2c ? bytes[at + 1]! : 0
      // The next number of the same array.
      if (behindComma >= 0x2d && behindComma <= 0x39) {
        this.at = at + 1
        return behindComma
      }
      this.#behind()
    }
    let byte = this.#depth === 0 ? -1 : this.next()
    while (byte === 0x5b) {
      this.#open()
      byte = this.#depth === 0 ? -1 : this.next()
    }
    return byte
  }

  /** Into arrays, past those that are empty. */
  #open(): void {
    this.#depth++
    if (!this.begin(bracketEnd)) this.#closed()
  }

  #closed(): void {
    this.#depth--
    if (this.#depth > 0) this.#behind()
  }

  #behind(): void {
    while (!this.more(bracketEnd)) if (--this.#depth === 0) return
  }
}

function numbersOf(reader: LeafReader, datatype: NumberDatatype, bytes: number): Uint8Array {
  const packed = new Uint8Array(bytes)
  const elements = elementsOf(datatype, packed)
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array)
    readLongs(reader, datatype, elements)
  else if (datatype === 'BOOL') readBooleans(reader, packed)
  else readNumbers(reader, datatype, elements)
  return packed
}

/** Numbers that are read before they are stored, so that the loop is the same for elements of every type. */
const block = new Float64Array(1_024)

function readNumbers(
  reader: LeafReader,
  datatype: NumberDatatype,
  elements: Exclude<ReturnType<typeof elementsOf>, BigInt64Array | BigUint64Array>,
): void {
  const range = ranges[datatype]
  const [least, most] = range === undefined ? [-Infinity, Infinity] : [Number(range[0]), Number(range[1])]
  const isWhole = range !== undefined
  let stored = 0
  let inBlock = 0
  for (let first = reader.leaf(true); first !== -1; first = reader.leaf(false)) {
    if (stored + inBlock === elements.length) throw wrongShape()
    const leaf = readNumber(reader, first)
    const value = typeof leaf === 'number' ? leaf : Number(leaf)
    if (isWhole && !(value >= least && value <= most && Math.floor(value) === value))
      throw wrongElement(`${leaf} is no ${datatype}`)
    block[inBlock++] = value
    if (inBlock < block.length) continue
    elements.set(block, stored)
    stored += inBlock
    inBlock = 0
  }
  if (stored + inBlock !== elements.length) throw wrongShape()
  elements.set(block.subarray(0, inBlock), stored)
}

/** Numbers that a double holds exactly are stored in halves, without a bigint for each. */
function readLongs(
  reader: LeafReader,
  datatype: NumberDatatype,
  elements: BigInt64Array | BigUint64Array,
): void {
  const [least, most] = ranges[datatype]!
  const lowest = Number(least)
  const halves = new Uint32Array(elements.buffer, elements.byteOffset, 2 * elements.length)
  let at = 0
  for (let first = reader.leaf(true); first !== -1; first = reader.leaf(false)) {
    if (at === elements.length) throw wrongShape()
    const leaf = readNumber(reader, first)
    if (typeof leaf === 'number' && Number.isSafeInteger(leaf) && leaf >= lowest) {
      halves[2 * at] = leaf
      halves[2 * at + 1] = Math.floor(leaf / 2 ** 32)
    } else {
      if (!Number.isInteger(Number(leaf)) || leaf < least || leaf > most)
        throw wrongElement(`${leaf} is no ${datatype}`)
      elements[at] = BigInt(leaf)
    }
    at++
  }
  if (at !== elements.length) throw wrongShape()
}

function readBooleans(reader: LeafReader, elements: Uint8Array): void {
  let at = 0
  for (let first = reader.leaf(true); first !== -1; first = reader.leaf(false)) {
    if (at === elements.length) throw wrongShape()
    const leaf = first === smallT || first === smallF ? reader.literal() : reader.value(0, 'elsewhere')
    if (typeof leaf !== 'boolean') throw wrongElement('attempt to access JSON non-boolean as boolean')
    elements[at++] = Number(leaf)
  }
  if (at !== elements.length) throw wrongShape()
}

function readNumber(reader: LeafReader, first: number): number | bigint {
  if (isNumberStart(first)) return reader.number()
  reader.value(0, 'elsewhere')
  throw wrongElement('attempt to access JSON non-number as number')
}

/** A digit, a minus sign, or the beginning of `NaN` and `Infinity`. */
function isNumberStart(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x4e || byte === 0x49
}

/** Texts without escapes are copied as they stand. */
function stringsOf(reader: LeafReader, count: number): Uint8Array {
  if (!isUtf8(reader.bytes.subarray(reader.at))) throw reader.error('Invalid encoding in string.')
  // A text of n bytes stands in n + 3 at least, with its quotation marks and a comma, and becomes n + 4. Escapes only shrink.
  const packed = Buffer.allocUnsafeSlow(reader.bytes.byteLength - reader.at + count + 1)
  let at = 0
  let found = 0
  for (let first = reader.leaf(true); first !== -1; first = reader.leaf(false)) {
    if (first !== quote) throw notText(reader)
    if (++found > count) throw wrongShape()
    at = packString(reader, packed, at)
  }
  if (found !== count) throw wrongShape()
  return fitted(packed, at)
}

function packString(reader: LeafReader, packed: Buffer, at: number): number {
  const { bytes } = reader
  const start = reader.at
  if (reader.skipString()) {
    reader.at = start
    const text = reader.string()
    // UTF-8 has no half of a pair: another text would be stored.
    if (halfOfPair.test(text)) throw reader.error('The surrogate pair in string is invalid.', start)
    const written = packed.write(text, at + 4)
    packed.writeUInt32LE(written, at)
    return at + 4 + written
  }
  const length = reader.at - start - 2
  packed.writeUInt32LE(length, at)
  if (length < 64) for (let i = 0; i < length; i++) packed[at + 4 + i] = bytes[start + 1 + i]!
  else bytes.copy(packed, at + 4, start + 1, start + 1 + length)
  return at + 4 + length
}

/** All of its buffer, where that costs little. */
function fitted(packed: Buffer, length: number): Uint8Array {
  return length === packed.byteLength ? packed : new Uint8Array(packed.subarray(0, length))
}

function notText(reader: LeafReader): ServingError {
  reader.value(0, 'elsewhere')
  return new ServingError(
    'INVALID_ARG',
    'Unable to parse JSON bytes array: attempt to access JSON non-string as string',
  )
}

function wrongShape(): ServingError {
  return new ServingError(
    'INTERNAL',
    "Unable to parse 'data': Shape does not match true shape of 'data' field",
  )
}

function wrongElement(problem: string): ServingError {
  return new ServingError('INVALID_ARG', `Unable to parse 'data': ${problem}`)
}
