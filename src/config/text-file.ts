import { readFileSync } from 'node:fs'

/** A text is in another encoding than UTF-8. */
export class EncodingError extends TypeError {
  constructor(encoding: string) {
    super(`it is ${encoding}, as some editors on Windows write it: save it as UTF-8`)
    this.name = 'EncodingError'
  }
}

/**
 * The text of a file that people write, whatever their editor puts first: a byte order mark is no part of it.
 *
 * @throws EncodingError where it is UTF-16 or UTF-32; what the file system says
 */
export function readTextFile(path: string): string {
  return textOfBytes(readFileSync(path))
}

/** Bytes of UTF-8 as text, without a byte order mark. @throws EncodingError */
export function textOfBytes(bytes: Uint8Array): string {
  const encoding = otherEncoding(bytes)
  if (encoding !== undefined) throw new EncodingError(encoding)
  return new TextDecoder().decode(bytes)
}

/** By its byte order mark; without one, by the zeros that UTF-16 has beside every Latin letter. */
function otherEncoding(bytes: Uint8Array): 'UTF-16' | 'UTF-32' | undefined {
  const [a, b, c, d] = bytes
  if ((a === 0xff && b === 0xfe && c === 0 && d === 0) || (a === 0 && b === 0 && c === 0xfe && d === 0xff))
    return 'UTF-32'
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return 'UTF-16'
  if (bytes.length >= 4 && ((a === 0 && b !== 0 && c === 0) || (a !== 0 && b === 0 && d === 0)))
    return 'UTF-16'
  return undefined
}
