import { ServerUrlError } from './client-errors.js'

/** Two ways in which a server of the KServe v2 protocol is asked. */
export const serverProtocols = ['http', 'grpc'] as const
export type ServerProtocol = (typeof serverProtocols)[number]

/** Where a server listens. */
export type ServerTarget = Readonly<{
  protocol: ServerProtocol
  tls: boolean
  /** Without the brackets of an IPv6 address. */
  host: string
  port: number
  /** Before `/v2`, without a slash at its end; HTTP alone. */
  prefix: string
  /** For people. */
  url: string
}>

const usualPorts = { http: 8000, grpc: 8001 } as const

/**
 * Reads an address: `http://`, `https://`, `grpc://`, `grpcs://`, or `HOST:PORT`.
 *
 * @param text - undefined: the usual port on this machine.
 * @param protocol - asked for by name; undefined: as the address says, else HTTP.
 * @throws ServerUrlError `GANTRY_USAGE`
 */
export function serverTarget(text: string | undefined, protocol: ServerProtocol | undefined): ServerTarget {
  const given = text ?? `127.0.0.1:${usualPorts[protocol ?? 'http']}`
  const [, scheme = ''] = /^([a-z]+):\/\//i.exec(given) ?? []
  const known = schemes[scheme.toLowerCase()]
  if (known === undefined) throw new ServerUrlError(given, `"${scheme}" is no protocol of model servers`)
  const rest = `http://${scheme === '' ? given : given.slice(scheme.length + 3)}`
  if (!URL.canParse(rest)) throw new ServerUrlError(given, 'it is no address')
  const { hostname, port, pathname, username, search, hash } = new URL(rest)
  if (username !== '')
    throw new ServerUrlError(given.replace(/\/\/.*@/, '//'), 'a server takes a token, no login')
  if (known.protocol === 'grpc' && protocol === 'http')
    throw new ServerUrlError(given, 'a gRPC address was given and HTTP asked for')
  const taken = known.protocol ?? protocol ?? 'http'
  const prefix = pathname.replace(/\/+$/, '')
  if (search !== '' || hash !== '' || (taken === 'grpc' && prefix !== ''))
    throw new ServerUrlError(given, 'there is something behind the port')
  const { tls } = known
  const at = portOf(port, rest, tls, taken)
  return {
    protocol: taken,
    tls,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: at,
    prefix,
    url: `${taken}${tls ? 's' : ''}://${hostname}:${at}${prefix}`,
  }
}

const schemes: Readonly<Record<string, Readonly<{ protocol: ServerProtocol | undefined; tls: boolean }>>> = {
  '': { protocol: undefined, tls: false },
  // Many write http:// for whatever a server speaks.
  http: { protocol: undefined, tls: false },
  https: { protocol: undefined, tls: true },
  grpc: { protocol: 'grpc', tls: false },
  grpcs: { protocol: 'grpc', tls: true },
}

/** Of an address without one: 443 with TLS, else the usual one of the protocol. Port 80 is taken for none by URLs. */
function portOf(port: string, written: string, tls: boolean, protocol: ServerProtocol): number {
  if (port !== '') return Number(port)
  if (/:80(\/|$)/.test(written)) return 80
  return tls ? 443 : usualPorts[protocol]
}
