import { ServingError } from '../../serving/serving-error.js'

/** Shorter texts have less of everything than the limits. */
const smallBytes = 64 * 1024

/** Objects, arrays and members; a tensor has an array for each row at most. */
export const mostJsonParts = 1_000_000
/** Elements of tensors, all together: 16 million. */
export const mostJsonValues = 2 ** 24

const [quote, backslash, comma, colon, bracket, brace] = Buffer.from('"\\,:[{')

/**
 * Refuses JSON that would take many times its own size in memory, before it is parsed: `[[],[],...]` takes twenty times as much.
 *
 * @throws ServingError `INVALID_ARG`
 */
export function checkJsonSize(bytes: Uint8Array): void {
  if (bytes.byteLength <= smallBytes) return
  let parts = 0
  let values = 0
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at]
    if (byte === comma) values++
    else if (byte === bracket || byte === brace || byte === colon) parts++
    else if (byte === quote) at = endOfString(bytes, at)
  }
  if (parts > mostJsonParts) throw tooMany(mostJsonParts, 'objects, arrays and members')
  if (values > mostJsonValues) throw tooMany(mostJsonValues, 'values')
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1
  while (at < bytes.byteLength && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

function tooMany(most: number, of: string): ServingError {
  return new ServingError('INVALID_ARG', `request JSON has more than ${most} ${of}`)
}
