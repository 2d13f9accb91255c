import type { Socket } from 'node:net'

/** Who is at the far end of a connection that came through another process of ours. */
export type Peer = Readonly<{
  address: string
  port: number
  /** The subject of the certificate that it showed and that was found good, in one line. */
  subject?: string
}>

const peers = new WeakMap<Socket, Peer>()

/** From here on the socket tells this address as its own, to all who ask it: limits by address, log lines. */
export function setPeer(socket: Socket, peer: Peer): void {
  peers.set(socket, peer)
  Object.defineProperties(socket, {
    remoteAddress: { value: peer.address, configurable: true },
    remotePort: { value: peer.port, configurable: true },
    remoteFamily: { value: peer.address.includes(':') ? 'IPv6' : 'IPv4', configurable: true },
    // What frameworks look at to tell https from http.
    encrypted: { value: true, configurable: true },
  })
}

/** What {@link setPeer} said of it; `undefined` for a connection that came directly. */
export function peerOf(socket: Socket): Peer | undefined {
  return peers.get(socket)
}
