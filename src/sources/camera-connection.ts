import { once } from 'node:events'
import { connect as connectTcp, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { constants } from 'node:crypto'
import { systemLimit } from '../lifecycle/system-limit.js'
import type { CheckedAddress } from '../lifecycle/address-policy.js'
import { type Failure, failureBy, networkFailures } from './failure-reason.js'

/** Shorter than the time ffmpeg waits for an answer, so that the reason is ours to tell. */
const connectMs = 8_000

/** Cameras speak old TLS and vouch for themselves; what travels is encrypted, and nobody's identity is verified. */
const anyCamera: ConnectionOptions = {
  rejectUnauthorized: false,
  minVersion: 'TLSv1',
  ciphers: 'DEFAULT:@SECLEVEL=0',
  secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
}

export type Endpoint = Readonly<{ host: string; port: number; secure: boolean }>

/**
 * Connects to a camera at one of the addresses that were checked, whichever answers; no name is looked up.
 *
 * @param onread - memory for what comes, where it is to be read without new memory for each piece; not with TLS.
 * @throws what the system or TLS has against it, or an error when nobody answers in time; {@link connectionFailure} names it.
 */
export async function connectToCamera(
  { host, port, secure }: Endpoint,
  addresses: readonly CheckedAddress[],
  signal?: AbortSignal,
  onread?: OnReadOpts,
): Promise<Socket> {
  const options = { host, port, noDelay: true, autoSelectFamily: true, lookup: fixed(addresses) }
  const servername = isIP(host) === 0 ? host : ''
  const socket = secure
    ? connectTls({ ...options, ...anyCamera, servername })
    : connectTcp({ ...options, ...(onread === undefined ? {} : { onread }) })
  // It may break at any time, and whoever uses it is told by its end.
  socket.on('error', () => undefined)
  try {
    const late = AbortSignal.timeout(connectMs)
    await once(socket, secure ? 'secureConnect' : 'connect', {
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Why a host is not connected to at all. */
export function unreachable(
  resolution: Readonly<{ kind: 'refused'; reason: string }> | { kind: 'unknown' },
): Failure {
  if (resolution.kind === 'unknown') return { reason: networkFailures.unknownHost, retry: 'normal' }
  return { reason: `address not allowed: ${resolution.reason} (see cameraNetworks)`, retry: 'slow' }
}

/** Why a connection could not be opened. */
export function connectionFailure(error: unknown): Failure {
  const limit = systemLimit(error)
  if (limit !== undefined) return failureBy(limit)
  const { code = '' } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ECONNREFUSED':
      return { reason: networkFailures.refused, retry: 'normal' }
    case 'ECONNRESET':
      return { reason: networkFailures.reset, retry: 'normal' }
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return { reason: networkFailures.unreachable, retry: 'normal' }
    default:
      return /SSL|TLS|EPROTO/.test(code)
        ? { reason: networkFailures.noTls, retry: 'normal' }
        : { reason: networkFailures.timedOut, retry: 'normal' }
  }
}

/** A lookup that knows its answer already. */
function fixed(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_host, options, done) => {
    const [first] = addresses
    if (options.all === true) done(null, [...addresses])
    else if (first) done(null, first.address, first.family)
  }
}
