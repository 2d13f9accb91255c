import { ServerResponse, STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { streamProtocol } from '../events/stream-protocol.js'
import type { Log } from '../lifecycle/log.js'
import type { StreamHub } from '../sinks/stream-hub.js'
import { tokenAccepted, type AccessSettings } from './access.js'
import {
  BadRequestError,
  RouteNotFoundError,
  StoppingError,
  TooManyClientsError,
  UnauthorizedError,
} from './errors.js'
import { checkSite } from './guard.js'
import { problemMediaType, toProblem } from './problem.js'
import { streamPath } from './routes/results.js'
import { securityHeaders } from './security-headers.js'

export type StreamUpgradeSettings = AccessSettings & Readonly<{ maxStreamClients: number }>

const maxMessageBytes = 64 * 1024

/** Turns upgrade requests of `/api/v1/stream` into clients of the hub; everything else gets a problem and is closed. */
export class StreamUpgrade {
  readonly #sockets: WebSocketServer

  constructor(
    readonly hub: StreamHub,
    readonly settings: StreamUpgradeSettings,
    readonly draining: () => boolean,
    readonly log: Log,
  ) {
    this.#sockets = new WebSocketServer({
      noServer: true,
      clientTracking: true,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      handleProtocols: () => streamProtocol,
    })
  }

  listen(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      // Until the hub has the socket, an error is the client's going away.
      const ignore = (): void => undefined
      socket.on('error', ignore)
      if (request.headers.upgrade?.toLowerCase() !== 'websocket')
        return serveWithoutUpgrade(server, request, socket)
      try {
        this.#check(request)
      } catch (error) {
        this.log.debug({ reason: error instanceof Error ? error.message : '' }, 'stream client refused')
        return refuse(socket, error)
      }
      this.#sockets.handleUpgrade(request, socket, head, (client) => {
        socket.off('error', ignore)
        this.hub.attach(client)
      })
    })
  }

  /** Ends clients that did not answer the close handshake the hub began. */
  terminate(): void {
    for (const client of this.#sockets.clients) client.terminate()
    this.#sockets.close()
  }

  #check(request: IncomingMessage): void {
    if ((request.url ?? '').split('?')[0] !== streamPath) throw new RouteNotFoundError()
    checkSite('GET', request.headers, this.settings)
    if (!tokenAccepted(request.headers, this.settings)) throw new UnauthorizedError()
    if (this.draining()) throw new StoppingError()
    if (!offeredProtocols(request).includes(streamProtocol))
      throw new BadRequestError(
        `the stream speaks the sub-protocol ${streamProtocol} only`,
        [],
        `Offer it: new WebSocket(url, ['${streamProtocol}']).`,
      )
    const { maxStreamClients } = this.settings
    if (this.hub.clients >= maxStreamClients) throw new TooManyClientsError(maxStreamClients)
  }
}

function offeredProtocols(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
}

/**
 * Answers a request that offers another upgrade, such as `h2c`, as if it had not: some HTTP clients offer it on every request,
 * and a server may decline by answering. A body is past recovery by now: the parser has let go of the connection.
 */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex): void {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(
      socket,
      new BadRequestError('no upgrade but websocket is known here', [], 'Use plain HTTP/1.1.'),
    )
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  response.on('finish', () => socket.end())
  server.emit('request', request, response)
}

function refuse(socket: Duplex, error: unknown): void {
  const { problem, headers } = toProblem(error)
  const body = JSON.stringify(problem)
  const lines = Object.entries({
    ...securityHeaders,
    ...headers,
    'content-type': problemMediaType,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`)
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  )
}
