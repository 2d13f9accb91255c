import { elementBytes, type Datatype } from '../../serving/datatype.js'
import { elementsOf, isNumberDatatype, stringsOf, type NumberDatatype } from '../../serving/elements.js'
import { ServingError } from '../../serving/serving-error.js'
import { byteCount, elementCount } from '../../serving/tensor-check.js'
import type { Tensor } from '../../serving/tensor.js'
import { deepestJson } from './json.js'

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
 * The bytes of a tensor from the `data` of a JSON request, flat or nested.
 *
 * @throws ServingError in the words and with the status of Triton
 */
export function bytesOfJson(
  input: string,
  datatype: Datatype,
  shape: readonly number[],
  data: unknown,
): Uint8Array {
  const count = elementCount(input, shape)
  if (count === 0) return new Uint8Array(0)
  if (!Array.isArray(data))
    throw new ServingError('INVALID_ARG', "Unable to parse 'data': attempt to access JSON non-array as array")
  if (datatype === 'BYTES') return stringsOfJson(data, count)
  if (!isNumberDatatype(datatype))
    throw new ServingError(
      'INVALID_ARG',
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${input}`,
    )
  return numbersOfJson(data, datatype, count, byteCount(input, datatype, count))
}

function numbersOfJson(
  data: readonly unknown[],
  datatype: NumberDatatype,
  count: number,
  bytes: number,
): Uint8Array {
  // Every element takes two characters of the body at least, so a shape that is not true cannot ask for more memory than that.
  if (leafCount(data) !== count) throw wrongShape()
  const packed = new Uint8Array(bytes)
  const elements = elementsOf(datatype, packed)
  let at = 0
  forEachLeaf(data, 0, (leaf) => {
    elements[at++] = elementOf(datatype, leaf)
  })
  return packed
}

function elementOf(datatype: NumberDatatype, leaf: unknown): never {
  if (datatype === 'BOOL') {
    if (typeof leaf !== 'boolean') throw wrongElement('attempt to access JSON non-boolean as boolean')
    return Number(leaf) as never
  }
  if (typeof leaf !== 'number' && typeof leaf !== 'bigint')
    throw wrongElement('attempt to access JSON non-number as number')
  const range = ranges[datatype]
  if (range === undefined) return Number(leaf) as never
  if (!Number.isInteger(Number(leaf)) || leaf < range[0] || leaf > range[1])
    throw wrongElement(`${leaf} is no ${datatype}`)
  return (elementBytes(datatype) === 8 ? BigInt(leaf) : Number(leaf)) as never
}

function stringsOfJson(data: readonly unknown[], count: number): Uint8Array {
  let bytes = 0
  let found = 0
  forEachLeaf(data, 0, (leaf) => {
    bytes += 4 + Buffer.byteLength(textLeaf(leaf))
    found++
  })
  if (found !== count) throw wrongShape()
  const packed = Buffer.allocUnsafe(bytes)
  let at = 0
  forEachLeaf(data, 0, (leaf) => {
    const written = packed.write(textLeaf(leaf), at + 4)
    packed.writeUInt32LE(written, at)
    at += 4 + written
  })
  return packed
}

function textLeaf(leaf: unknown): string {
  if (typeof leaf === 'string') return leaf
  throw new ServingError(
    'INVALID_ARG',
    'Unable to parse JSON bytes array: attempt to access JSON non-string as string',
  )
}

function forEachLeaf(data: readonly unknown[], depth: number, visit: (leaf: unknown) => void): void {
  if (depth >= deepestJson)
    throw new ServingError('INVALID_ARG', `JSON nesting depth exceeds maximum allowed limit (${deepestJson})`)
  for (const item of data) {
    if (Array.isArray(item)) forEachLeaf(item, depth + 1, visit)
    else visit(item)
  }
}

function leafCount(data: readonly unknown[]): number {
  let count = 0
  forEachLeaf(data, 0, () => count++)
  return count
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

/**
 * The `data` of an output, as JSON text: always flat.
 *
 * @throws ServingError `INVALID_ARG` for types that JSON cannot carry
 */
export function jsonOfTensor({ datatype, data }: Tensor): string {
  if (datatype === 'BYTES')
    return `[${Array.from(stringsOf(data), (element) => JSON.stringify(textOf(element))).join(',')}]`
  if (!isNumberDatatype(datatype))
    throw new ServingError(
      'INVALID_ARG',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    )
  const elements = elementsOf(datatype, data)
  if (datatype === 'BOOL')
    return `[${Array.from(elements as Uint8Array, (element) => element !== 0).join(',')}]`
  if (datatype === 'FP32' || datatype === 'FP64')
    return `[${Array.from(elements as Float64Array, floatText).join(',')}]`
  return `[${elements.join(',')}]`
}

/** With a point or an exponent, so that clients whose language tells the two apart read a float. */
function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value)
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
