import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import type { Socket } from 'node:net'
import type { PacketSink } from './clip-player.js'
import { datagramOf } from './rtp-packets.js'

/** A client that does not read loses pictures instead of filling our memory. */
const maxQueuedBytes = 4 * 1024 * 1024

/** Packets inside the RTSP connection itself. */
export class TcpSink implements PacketSink {
  constructor(readonly socket: Socket) {}

  rtp(packets: readonly Buffer[]): void {
    if (this.socket.destroyed || this.socket.writableLength > maxQueuedBytes) return
    this.socket.cork()
    for (const packet of packets) this.socket.write(packet)
    this.socket.uncork()
  }

  rtcp(packet: Buffer): void {
    this.rtp([packet])
  }

  close(): void {
    // The connection belongs to the client; only the sending ends.
  }
}

/** Packets as datagrams to the ports the client named, at the address it came from. */
export class UdpSink implements PacketSink {
  private constructor(
    readonly address: string,
    readonly clientPorts: readonly [rtp: number, rtcp: number],
    readonly sockets: readonly [rtp: DatagramSocket, rtcp: DatagramSocket],
  ) {}

  static async open(client: Socket, rtpPort: number, rtcpPort: number): Promise<UdpSink> {
    const address = (client.remoteAddress ?? '127.0.0.1').replace(/^::ffff:/, '')
    return new UdpSink(address, [rtpPort, rtcpPort], [await bound(), await bound()])
  }

  get ports(): readonly number[] {
    return this.sockets.map((socket) => socket.address().port)
  }

  rtp(packets: readonly Buffer[]): void {
    for (const packet of packets) this.sockets[0].send(datagramOf(packet), this.clientPorts[0], this.address)
  }

  rtcp(packet: Buffer): void {
    this.sockets[1].send(datagramOf(packet), this.clientPorts[1], this.address)
  }

  close(): void {
    for (const socket of this.sockets) socket.close()
  }
}

async function bound(): Promise<DatagramSocket> {
  const socket = createSocket('udp4')
  // A client that went away answers with ICMP errors; its TCP connection says the same.
  socket.on('error', () => undefined)
  return new Promise((resolve) => {
    socket.bind(0, '127.0.0.1', () => {
      socket.setSendBufferSize(1 << 20)
      resolve(socket)
    })
  })
}
