import type { GantryError } from '../../errors.js'
import { ServerRefusalError, ServerTokenError } from './client-errors.js'
import type { HeaderFields } from './hpack-decoder.js'

const unauthenticated = 16

/** The HTTP status that a status of gRPC stands for; 500 for others. */
const httpStatuses: Readonly<Record<number, number>> = {
  1: 499,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  12: 501,
  14: 503,
}

/** What a call's status says went wrong; undefined when nothing did. */
export function statusError(url: string, fields: HeaderFields): GantryError | undefined {
  const code = Number(fields.get('grpc-status'))
  if (code === 0) return undefined
  if (code === unauthenticated) return new ServerTokenError(url)
  return new ServerRefusalError(url, messageIn(fields) ?? `status ${code} of gRPC`, httpStatuses[code] ?? 500)
}

/** Percent-encoded UTF-8. */
function messageIn(fields: HeaderFields): string | undefined {
  const text = fields.get('grpc-message')
  if (text === undefined || text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
