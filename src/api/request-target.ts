import type { IncomingMessage } from 'node:http'
import { BadRequestError } from './errors.js'

/**
 * Path and query that a request asks for. A target with scheme and name, as for a proxy, is asked of that name: the `Host` header
 * does not count beside it (RFC 9112 3.2.2), and is replaced.
 */
export function originForm({ url = '/', headers }: IncomingMessage): string {
  const [, authority, rest = ''] = /^https?:\/\/([^/?#]*)([^#]*)/i.exec(url) ?? []
  if (authority === undefined) return url
  headers.host = authority
  return rest.startsWith('/') ? rest : `/${rest}`
}

/**
 * Holds a request to RFC 9112 3.2: what stands before us may have looked at another `Host` header than we do.
 *
 * @throws BadRequestError for more than one, and for none by HTTP/1.1
 */
export function checkHostHeader({ rawHeaders, httpVersion }: IncomingMessage): void {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === 'host') count++
  if (count > 1 || (count === 0 && httpVersion !== '1.0'))
    throw new BadRequestError(`the request has ${count} Host headers`, [], 'Send one.')
}
