import { mask } from '../../config/redact.js'

/** Shorter texts, and shorter pieces of one, are words of any answer. */
const [leastSecret, leastPiece] = [4, 8]

/**
 * A text without secrets, nor any piece of one that somebody may repeat alone: a token without its scheme, the login that `Basic` encodes,
 * a segment of a path, a value of a query, decoded or not.
 *
 * @param secrets - whole values of headers, secrets of signatures, path and query of a URL.
 */
export function withoutSecretPieces(text: string, secrets: readonly string[]): string {
  const whole = secrets
    .flatMap((secret) => [secret, ...loginOf(secret)])
    .filter(({ length }) => length >= leastSecret)
  const pieces = secrets.flatMap(piecesOf).filter(({ length }) => length >= leastPiece)
  return [...new Set([...whole, ...pieces])]
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, mask), text)
}

/** What a header of basic authentication holds: `user:password`, and the password. */
function loginOf(header: string): readonly string[] {
  const encoded = /^basic\s+(\S+)$/i.exec(header)?.[1]
  if (encoded === undefined) return []
  const login = Buffer.from(encoded, 'base64').toString()
  return [login, login.slice(login.indexOf(':') + 1)]
}

function piecesOf(secret: string): readonly string[] {
  return secret.split(/[\s/?&=,;:]+|^whsec_/).flatMap((piece) => [piece, decoded(piece)])
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    return piece
  }
}
