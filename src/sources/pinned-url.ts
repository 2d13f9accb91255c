import { once } from 'node:events'
import { connect, isIP, type LookupFunction } from 'node:net'
import type { CheckedAddress } from './address-policy.js'

/** Shorter than the time ffmpeg waits, so that it is left to ffmpeg to say that nothing answers. */
const connectMs = 3_000
const rtspPort = 554

/**
 * The URL of an RTSP camera with an address that was checked in place of its name, so that the decoder does not look the name up again
 * and find another. `rtsps` keeps its name: TLS servers choose their certificate by it.
 *
 * @param addresses - of the name; of several, the one is taken that answers.
 */
export async function pinned(url: string, addresses: readonly CheckedAddress[]): Promise<string> {
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'rtsp:' || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return url
  const chosen = addresses.length > 1 ? await answering(addresses, Number(port) || rtspPort) : addresses[0]
  if (chosen === undefined) return url
  const host = chosen.family === 6 ? `[${chosen.address}]` : chosen.address
  return url.replace(/^(rtsp:\/\/(?:[^@/]*@)?)[^:/?#]+/i, (_, start: string) => start + host)
}

/** The first that takes a connection, or simply the first. */
async function answering(
  addresses: readonly CheckedAddress[],
  port: number,
): Promise<CheckedAddress | undefined> {
  const lookup: LookupFunction = (_host, _options, done) => done(null, [...addresses])
  const socket = connect({ host: 'camera', port, autoSelectFamily: true, lookup })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(connectMs) })
    return addresses.find(({ address }) => address === socket.remoteAddress) ?? addresses[0]
  } catch {
    return addresses[0]
  } finally {
    socket.destroy()
  }
}
