import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import type { Socket } from 'node:net'
import { nowMs } from '../../lifecycle/clock.js'
import type { PacketSink } from './clip-player.js'
import { datagramOf, type Channels } from './rtp-packets.js'

/** What a client may leave unread in our memory: so many bytes, for so long. What lies in buffers of the system is beside it. */
const mostQueuedBytes = 1024 * 1024
const longestQueuedMs = 1_000

/** Packets inside the RTSP connection itself. */
export class TcpSink implements PacketSink {
  #queuedSinceMs: number | undefined
  #skips = false

  constructor(
    readonly socket: Socket,
    /** Channels that the client asked for. */
    readonly channels: Channels,
  ) {}

  /** A client that does not read in time loses whole pictures up to a key frame, so that those that it gets are whole. */
  takes(isKey: boolean): boolean {
    if (this.socket.destroyed) return false
    const { writableLength } = this.socket
    if (writableLength === 0) this.#queuedSinceMs = undefined
    const waitedMs = nowMs() - (this.#queuedSinceMs ?? nowMs())
    if (writableLength > mostQueuedBytes || waitedMs > longestQueuedMs) this.#skips = true
    else if (this.#skips && isKey && writableLength === 0) this.#skips = false
    return !this.#skips
  }

  rtp(packets: readonly Buffer[]): void {
    this.socket.cork()
    for (const packet of packets) this.socket.write(packet)
    this.socket.uncork()
    if (this.socket.writableLength > 0) this.#queuedSinceMs ??= nowMs()
  }

  rtcp(packet: Buffer): void {
    if (!this.socket.destroyed && this.socket.writableLength === 0) this.socket.write(packet)
  }

  close(): void {
    // The connection belongs to the client; only the sending ends.
  }
}

/** Packets as datagrams to the ports the client named, at the address it came from. */
export class UdpSink implements PacketSink {
  readonly channels: Channels = [0, 1]

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

  takes(): boolean {
    return true
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
