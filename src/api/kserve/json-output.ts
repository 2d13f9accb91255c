import { isUtf8 } from 'node:buffer'
import { elementsOf, uint32At } from '../../tensors/elements.js'
import type { Tensor } from '../../tensors/tensor.js'
import { isNumberDatatype } from '../../tensors/element-type.js'
import { GrowingBytes } from '../../serving/growing-bytes.js'
import { ServingError } from '../../tensors/serving-error.js'

/** Elements whose texts are made and joined at once. */
const pieceElements = 4_096

const [quote, backslash, comma, bracket, bracketEnd] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d]

export type JsonOutput = Pick<Tensor, 'name' | 'datatype' | 'data'>

/**
 * The `data` of an output, as JSON: always flat.
 *
 * @throws ServingError `INVALID_ARG` for types and texts that JSON cannot carry
 */
export function jsonOfTensor({ name, datatype, data }: JsonOutput): Buffer {
  const json = new GrowingBytes()
  json.appendByte(bracket)
  if (datatype === 'BYTES') writeStrings(json, name, data)
  else if (isNumberDatatype(datatype)) writeElements(json, elementsOf(datatype, data), textsOf(datatype))
  else
    throw new ServingError(
      'INVALID_ARG',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    )
  json.appendByte(bracketEnd)
  return json.bytes
}

type Elements = Readonly<{ length: number; subarray(start: number, end: number): ArrayLike<number | bigint> }>

function writeElements(json: GrowingBytes, elements: Elements, textOf: (value: never) => string): void {
  for (let at = 0; at < elements.length; at += pieceElements) {
    const texts = Array.from(elements.subarray(at, at + pieceElements) as ArrayLike<never>, textOf)
    json.appendText((at === 0 ? '' : ',') + texts.join(','))
  }
}

function textsOf(datatype: string): (value: never) => string {
  if (datatype === 'BOOL') return (value) => (value === 0 ? 'false' : 'true')
  return datatype === 'FP32' || datatype === 'FP64' ? floatText : String
}

/** With a point or an exponent, so that clients whose language tells the two apart read a float. */
function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value)
}

/** Ends where a length does not fit any more. */
function writeStrings(json: GrowingBytes, name: string, data: Uint8Array): void {
  for (let at = 0; at + 4 <= data.byteLength;) {
    const start = at + 4
    const end = start + uint32At(data, at)
    if (end > data.byteLength) return
    if (at > 0) json.appendByte(comma)
    writeString(json, name, data, start, end)
    at = end
  }
}

/** @throws ServingError for what is not UTF-8: another text would stand there, and nobody could tell */
function writeString(json: GrowingBytes, name: string, data: Uint8Array, start: number, end: number): void {
  if (isPlain(data, start, end)) {
    json.appendByte(quote)
    json.appendPart(data, start, end)
    json.appendByte(quote)
    return
  }
  const element = Buffer.from(data.buffer, data.byteOffset + start, end - start)
  if (!isUtf8(element))
    throw new ServingError(
      'INVALID_ARG',
      `output '${name}' has an element that is not UTF-8, which JSON cannot carry. Please use the binary data format for output`,
    )
  json.appendText(JSON.stringify(element.toString('utf8')))
}

/** ASCII that JSON writes as it is. */
function isPlain(data: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = data[at]!
    if (byte < 0x20 || byte > 0x7e || byte === quote || byte === backslash) return false
  }
  return true
}
