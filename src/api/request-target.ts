import type { IncomingMessage } from 'node:http'
import { BadRequestError } from './errors.js'

/**
 * Path and query that a request asks for, in one spelling: nobody looks at another. Escapes of characters that need none are undone in the
 * path (`/%61pi`, RFC 3986 6.2.2.2), so that it is counted and guarded as what it is routed to. A target with scheme and name, as for a proxy, is asked of that name: the `Host` header
 * does not count beside it (RFC 9112 3.2.2), and is replaced.
 */
export function originForm({ url = '/', headers }: IncomingMessage): string {
  const [, authority, rest = ''] = /^https?:\/\/([^/?#]*)([^#]*)/i.exec(url) ?? []
  if (authority === undefined) return plainPath(url)
  headers.host = authority
  return plainPath(rest.startsWith('/') ? rest : `/${rest}`)
}

function plainPath(target: string): string {
  const end = target.indexOf('?')
  const path = end === -1 ? target : target.slice(0, end)
  if (!path.includes('%')) return target
  const plain = path.replace(/%[2-7][0-9a-f]/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escape
  })
  return plain + target.slice(path.length)
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
