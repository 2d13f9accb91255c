import type { IncomingMessage, Server } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { streamProtocol } from '../messages/stream-protocol.js'
import type { Log } from '../lifecycle/log.js'
import { tokenAccepted, type AccessSettings } from './access.js'
import {
  BadRequestError,
  RouteNotFoundError,
  StoppingError,
  StreamAwayError,
  UnauthorizedError,
} from './errors.js'
import { checkSite } from './guard.js'
import { handOver } from './hand-over.js'
import { refuseUpgrade } from './refuse-upgrade.js'
import { checkHostHeader, originForm } from './request-target.js'
import { streamPath } from './routes/results.js'
import type { StreamUpstream } from './stream-upstream.js'
import type { TokenGuesses } from './token-guesses.js'
import { offersWebSocket } from './upgrade-offers.js'

/** Checks upgrade requests of `/api/v1/stream` and hands the good ones on; everything else gets a problem and is closed. */
export class StreamUpgrade {
  constructor(
    readonly upstream: StreamUpstream,
    readonly settings: AccessSettings,
    readonly draining: () => boolean,
    readonly log: Log,
    readonly guesses: TokenGuesses,
  ) {}

  listen(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!offersWebSocket(request)) return
      // Until another has the socket, an error is the client's going away.
      socket.on('error', () => undefined)
      this.#handOn(request, socket, head).catch((error: unknown) => {
        this.log.debug({ reason: error instanceof Error ? error.message : '' }, 'stream client refused')
        refuseUpgrade(socket, error)
      })
    })
  }

  /** @throws GantryError why the client is refused */
  async #handOn(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    await this.guesses.look(addressOf(message), message.headers, this.settings)
    this.#check(message)
    if (!(socket instanceof Socket)) throw new TypeError('a connection is no socket')
    const { method = '', url = '', headers } = message
    const request = { method, url, headers }
    const isTaken = await handOver(socket, () => this.upstream.adopt(request, socket, head))
    if (!isTaken) throw this.draining() ? new StoppingError() : new StreamAwayError()
  }

  #check(request: IncomingMessage): void {
    checkHostHeader(request)
    if (originForm(request).split('?')[0] !== streamPath) throw new RouteNotFoundError()
    checkSite('GET', request.headers, this.settings)
    if (!tokenAccepted(request.headers, this.settings)) throw new UnauthorizedError()
    if (this.draining()) throw new StoppingError()
    if (!offeredProtocols(request).includes(streamProtocol))
      throw new BadRequestError(
        `the stream speaks the sub-protocol ${streamProtocol} only`,
        [],
        `Offer it: new WebSocket(url, ['${streamProtocol}']).`,
      )
  }
}

/** Of a client whose connection another process of ours has, as that tells. */
function addressOf({ socket, headers }: IncomingMessage): string {
  return socket.remoteAddress ?? String(headers['x-forwarded-for'])
}

function offeredProtocols(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
}
