import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { CameraNetworks } from '../../src/config/camera-networks.js'

/** An address that the settings deny, and somebody there who writes down whatever reaches one port of it, over TCP and UDP. */
export class DeniedAddress {
  static readonly host = '127.0.0.2'
  static readonly networks: CameraNetworks = { allow: [], deny: [DeniedAddress.host] }
  readonly asked: string[] = []
  readonly #sockets = new Set<Socket>()

  private constructor(
    readonly server: Server,
    readonly datagrams: DatagramSocket,
  ) {
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      this.asked.push('a connection')
      socket.on('error', () => undefined)
      socket.on('data', (bytes) => this.asked.push(bytes.toString('latin1')))
    })
    datagrams.on('message', (bytes) => this.asked.push(`a datagram of ${bytes.length} bytes`))
  }

  static async listen(): Promise<DeniedAddress> {
    for (;;) {
      const server = createServer().listen(0, DeniedAddress.host)
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const datagrams = createSocket('udp4')
      try {
        // A packet stream has its reports at the next port; this one is even or odd as it comes, and the first packet is enough.
        datagrams.bind(port, DeniedAddress.host)
        await once(datagrams, 'listening')
        return new DeniedAddress(server, datagrams)
      } catch {
        server.close()
      }
    }
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.server.close()
    this.datagrams.close()
    await once(this.datagrams, 'close')
  }
}
