import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { streamProtocol } from '../../messages/stream-protocol.js'
import type { StreamHub } from '../../delivery/websocket/stream-hub.js'
import { TooManyClientsError } from '../../api/errors.js'
import { refuseUpgrade } from '../../api/refuse-upgrade.js'
import type { UpgradeRequest } from '../../api/stream-upstream.js'

const maxMessageBytes = 64 * 1024

/** Turns connections whose upgrade request was found good into clients of a hub, as many as there may be. */
export class ClientAcceptor {
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    handleProtocols: () => streamProtocol,
  })

  constructor(
    readonly hub: StreamHub,
    readonly maxClients: number,
  ) {}

  /** @param head - what was read behind the request. */
  accept(request: UpgradeRequest, socket: Socket, head: Buffer): void {
    // Until the hub has the socket, an error is the client's going away.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    if (this.hub.clients >= this.maxClients)
      return refuseUpgrade(socket, new TooManyClientsError(this.maxClients))
    // The handshake reads no more of a request than this.
    this.#sockets.handleUpgrade(request as IncomingMessage, socket, head, (client) => {
      socket.off('error', ignore)
      this.hub.attach(client, socket)
    })
  }
}
