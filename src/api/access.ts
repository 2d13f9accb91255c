import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { allowsHost, canonicalHost } from '../config/allowed-host.js'

/** Who may ask what; decided from headers alone, before any route runs. */
export type AccessSettings = Readonly<{
  /** Address the server was told to bind. */
  host: string
  token?: string | undefined
  allowedOrigins: readonly string[]
  /** Names of ours beside those that follow from `host` and `allowedOrigins`. */
  allowedHosts: readonly string[]
}>

/** The headers that decide; names in lower case as Node gives them. */
export type AccessHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Sub-protocol by which a browser, which cannot set headers on a WebSocket, hands over the token. */
export const tokenProtocolPrefix = 'gantry.token.'

/** Whether the address can be reached from other machines by anyone, and nobody has said that this is meant. */
export function isPublic(
  settings: Readonly<{ host: string; token?: string | undefined; insecure: boolean }>,
): boolean {
  return !isLoopbackHost(settings.host) && settings.token === undefined && !settings.insecure
}

/** Compares digests, so that the time taken tells nothing of the token, not even its length. */
export function tokenMatches(expected: string, given: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(expected), digest(given))
}

/** Token a request carries: bearer header, or `gantry.token.<base64url>` among the WebSocket sub-protocols. */
export function carriedToken(headers: AccessHeaders): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(text(headers['authorization']))?.[1]
  if (bearer !== undefined) return bearer
  const offered = text(headers['sec-websocket-protocol']).split(',')
  const protocol = offered.map((part) => part.trim()).find((part) => part.startsWith(tokenProtocolPrefix))
  return protocol === undefined
    ? undefined
    : Buffer.from(protocol.slice(tokenProtocolPrefix.length), 'base64url').toString('utf8')
}

/** Whether no token is set, or the request carries it. */
export function tokenAccepted(headers: AccessHeaders, settings: AccessSettings): boolean {
  if (settings.token === undefined) return true
  const given = carriedToken(headers)
  return given !== undefined && tokenMatches(settings.token, given)
}

/**
 * Whether the `Host` header is a name of ours, missing or empty. A page of another site that rebinds its own name to our address sends
 * that name; such a name has a dot and is neither configured nor an address, so it is refused. HTTP/1.0 has no such header, clients that
 * know of no name send an empty one (RFC 9112 3.2), and browsers always have a name.
 */
export function hostAccepted(headers: AccessHeaders, settings: AccessSettings): boolean {
  if (text(headers['host']) === '') return true
  const name = hostName(text(headers['host']))
  if (name === undefined) return false
  if (isLoopbackName(name) || name === canonicalHost(settings.host)) return true
  if (settings.allowedHosts.some((allowed) => allowsHost(allowed, name))) return true
  if (settings.allowedOrigins.some((origin) => hostName(originHost(origin)) === name)) return true
  if (isLoopbackHost(settings.host)) return false
  return isIP(name) !== 0 || name === canonicalHost(hostname()) || !name.includes('.')
}

/** Whether a page in a browser sent it, as far as headers tell: a page that reads over plain HTTP says nothing of itself. */
export function isFromBrowser(headers: AccessHeaders): boolean {
  // No other `Sec-Fetch-*`: programs that use `fetch` of Node send a mode.
  return headers['origin'] !== undefined || headers['sec-fetch-site'] !== undefined
}

/**
 * Whether a browser's page may ask. No `Origin` is a program, or a same-origin GET; `null` and foreign origins are refused,
 * and so are other sites' embeds, which send no `Origin` but say so in `Sec-Fetch-Site`. Following a link to the page is fine.
 */
export function originAccepted(method: string, headers: AccessHeaders, settings: AccessSettings): boolean {
  const origin = headers['origin']
  if (origin === undefined) {
    const site = text(headers['sec-fetch-site'])
    const foreign = site === 'cross-site' || site === 'same-site'
    return !foreign || (method === 'GET' && text(headers['sec-fetch-mode']) === 'navigate')
  }
  return isAllowedOrigin(text(origin), settings) || isOwnOrigin(text(origin), headers)
}

/** Whether the origin is one the configuration names; such a page gets CORS headers. */
export function isAllowedOrigin(origin: string, settings: AccessSettings): boolean {
  return settings.allowedOrigins.some((allowed) => sameOrigin(allowed, origin))
}

/** Names and addresses that only this machine can reach. */
export function isLoopbackHost(host: string): boolean {
  return isLoopbackName(canonicalHost(host))
}

function isLoopbackName(name: string): boolean {
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (isIP(name) === 4) return name.startsWith('127.')
  return name === '::1' || /^::ffff:7f[0-9a-f]{2}:/.test(name)
}

/** A port that the scheme implies may be left out in either. */
function isOwnOrigin(origin: string, headers: AccessHeaders): boolean {
  const host = text(headers['host'])
  if (hostName(host) === undefined || !URL.canParse(origin)) return false
  const { protocol, host: asked } = new URL(origin)
  return asked !== '' && asked === originHost(`${protocol}//${host}`)
}

function sameOrigin(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && new URL(a).origin === new URL(b).origin
}

/** `host:port` of an origin, empty for `null` and other non-URLs. The scheme does not count: a proxy may add TLS. */
function originHost(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : ''
}

/** Host header without its port, as {@link canonicalHost} gives it; `undefined` when it is not a host at all. */
function hostName(header: string): string | undefined {
  const [, host = ''] = /^(\[[0-9a-f:.%]+\]|[^\s:/?#@[\]\\]+)(?::\d{1,5})?$/i.exec(header) ?? []
  return canonicalHost(host) || undefined
}

function text(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : ''
}
