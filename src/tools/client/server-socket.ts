import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { ServerTarget } from './server-url.js'

/** What vouches for a server, and what vouches for this end. All is PEM. */
export type ServerTrust = Readonly<{
  /** Certificates, in place of those that come with Node; absent: those. */
  ca?: string | Buffer
  /** What is shown to a server that asks for a certificate. */
  cert?: string
  key?: string
}>

/** What a client shows its server, and by what it knows it. */
export type ServerLogin = Readonly<{ token: string | undefined; trust: ServerTrust }>

/** A connection to a server. */
export type ServerSocket = Socket | TLSSocket

/**
 * Connects to a server. What is written before it is connected goes out then.
 *
 * @param alpn - the protocol that is asked for over TLS.
 */
export function serverSocket(
  { host, port, tls }: ServerTarget,
  trust: ServerTrust,
  alpn: 'h2' | 'http/1.1',
): ServerSocket {
  const socket = tls
    ? connectTls({ host, port, ...trust, ALPNProtocols: [alpn], ...named(host) })
    : connect({ host, port })
  // Requests are whole when they are written: there is nothing to wait for.
  socket.setNoDelay(true)
  return socket
}

/** Names of hosts are for certificates; addresses are none. */
function named(host: string): { servername?: string } {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host }
}
