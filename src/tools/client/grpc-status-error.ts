import type { IncomingHttpHeaders } from 'node:http2'
import type { GantryError } from '../../errors.js'
import { ServerRefusalError, ServerTokenError } from './client-errors.js'

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
export function statusError(url: string, headers: IncomingHttpHeaders): GantryError | undefined {
  const code = Number(headers['grpc-status'])
  if (code === 0) return undefined
  if (code === unauthenticated) return new ServerTokenError(url)
  return new ServerRefusalError(
    url,
    messageIn(headers) ?? `status ${code} of gRPC`,
    httpStatuses[code] ?? 500,
  )
}

/** Percent-encoded UTF-8. */
function messageIn(headers: IncomingHttpHeaders): string | undefined {
  const text = headers['grpc-message']
  if (typeof text !== 'string' || text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
