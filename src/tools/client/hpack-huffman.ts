import { Http2SyntaxError } from './http2-syntax-error.js'

/** Bits of each octet's code, and of the end of a string (256). RFC 7541, appendix B. */
const codeLengths = Uint8Array.of(
  ...[13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28],
  ...[28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6],
  ...[
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
  ],
  ...[8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7],
  ...[15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24],
  ...[23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23],
  ...[23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26],
  ...[26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20],
  ...[21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27],
  ...[27, 27, 26, 30],
)
const endOfString = 256
const longest = 30

/**
 * The codes are canonical: those of one length follow one another in the order of the symbols, and those of the next length follow on
 * them. So the lengths are all that is needed.
 */
const symbols: readonly number[] = Array.from(codeLengths.keys()).sort(
  (a, b) => codeLengths[a]! - codeLengths[b]! || a - b,
)
/** Of each length: the first code, how many there are, and where their symbols begin. */
const lengths = Array.from({ length: longest + 1 }, () => ({ first: 0, count: 0, from: 0 }))
for (const length of codeLengths) lengths[length]!.count += 1
for (let length = 1; length <= longest; length++) {
  const before = lengths[length - 1]!
  lengths[length]!.first = (before.first + before.count) * 2
  lengths[length]!.from = before.from + before.count
}

/** @throws Http2SyntaxError */
export function huffmanText(bytes: Uint8Array): string {
  let text = ''
  let code = 0
  let length = 0
  for (const octet of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((octet >> bit) & 1)
      length += 1
      if (length > longest) throw new Http2SyntaxError('a header has a code of Huffman that there is not')
      const { first, count, from } = lengths[length]!
      if (code - first >= count) continue
      const symbol = symbols[from + code - first]!
      if (symbol === endOfString) throw new Http2SyntaxError('a header ends in its middle')
      text += String.fromCharCode(symbol)
      code = 0
      length = 0
    }
  }
  // What fills the last octet is ones, the beginning of the end of a string.
  if (length > 7 || code !== 2 ** length - 1) throw new Http2SyntaxError('a header is not filled with ones')
  return text
}
