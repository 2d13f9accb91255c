import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { ServerTarget } from './server-url.js'

/** What vouches for a server. */
export type ServerTrust = Readonly<{
  /** PEM of certificates, in place of those that come with Node; undefined: those. */
  ca: Buffer | undefined
}>

/** A connection to a server. */
export type ServerSocket = Socket | TLSSocket

/**
 * Connects to a server. What is written before it is connected goes out then.
 *
 * @param alpn - the protocol that is asked for over TLS.
 */
export function serverSocket(
  { host, port, tls }: ServerTarget,
  { ca }: ServerTrust,
  alpn: 'h2' | 'http/1.1',
): ServerSocket {
  const socket = tls
    ? connectTls({ host, port, ...(ca && { ca }), ALPNProtocols: [alpn], ...named(host) })
    : connect({ host, port })
  // Requests are whole when they are written: there is nothing to wait for.
  socket.setNoDelay(true)
  return socket
}

/** Names of hosts are for certificates; addresses are none. */
function named(host: string): { servername?: string } {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host }
}
