import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { BadRequestError } from './errors.js'
import { refuseUpgrade } from './refuse-upgrade.js'
import { hasBody } from './relay.js'

/** From so many header fields on, Node drops some in silence, or refuses the request, by its version. */
const maxFields = 1_000
/** Whether Node reads the body of such a request itself, and gives no connection that could begin anew. */
const readsBodies = Number(process.versions.node.split('.')[0]) >= 25
/** Fields that are about the upgrade alone. */
const ofUpgrade: ReadonlySet<string> = new Set(['upgrade', 'http2-settings'])

/** Whether a request wants its connection to become a WebSocket. One of HTTP/1.0 cannot (RFC 9110 7.8). */
export function offersWebSocket({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion !== '1.0' && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Has requests that offer another protocol, such as `h2c`, answered as if they did not, which is how a server declines (RFC 9110 7.8):
 * some HTTP clients offer it with the first request of every connection, whatever its method. The connection is kept.
 *
 * Node's parser has let go of the connection when it tells of an offer. What it read is written down without the offer, put before what
 * comes next, and the connection begins anew. Newer versions can be told to go on; as they lose what the same packet has behind the
 * request, they are where they must be: for those with a body.
 *
 * To be called before the server listens, and before anything else stands before its connections.
 *
 * @param takes - whether somebody else answers an offer.
 */
export function declineUpgrades(
  server: Server,
  takes: (request: IncomingMessage) => boolean = () => false,
): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  const latest = new WeakMap<Socket, ServerResponse>()
  server.prependListener('request', ({ socket }, response) => latest.set(socket, response))
  if (readsBodies)
    Object.assign(server, {
      shouldUpgradeCallback: (request: IncomingMessage) => takes(request) || !hasBody(request.headers),
    })
  server.on('upgrade', (request: IncomingMessage, duplex, head: Buffer) => {
    if (takes(request)) return
    const socket = duplex as Socket
    // Until the server has the socket again, an error is the client's going away.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    // A `Content-Length` that was dropped would make another request of the body.
    if (request.rawHeaders.length / 2 >= maxFields)
      return refuseUpgrade(
        socket,
        new BadRequestError('the request has too many header fields', [], 'Send fewer.'),
      )
    socket.unshift(Buffer.concat([headWithoutOffer(request), head]))
    const begin = (): void => {
      socket.off('error', ignore)
      if (socket.destroyed || !socket.writable) return void socket.destroy()
      socket.setTimeout(0)
      for (const listener of listeners) listener.call(server, socket)
    }
    // Answers go out in the order of their requests.
    const before = latest.get(socket)
    if (before === undefined || before.closed) begin()
    else before.once('close', begin)
  })
}

function headWithoutOffer({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const value = rawHeaders[at + 1] ?? ''
    if (ofUpgrade.has(name.toLowerCase())) continue
    if (name.toLowerCase() !== 'connection') lines.push(`${name}: ${value}`)
    else lines.push(...connectionLine(value))
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** What else the field says, such as that the connection is closed after the answer. */
function connectionLine(value: string): readonly string[] {
  const options = value
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && !ofUpgrade.has(option.toLowerCase()))
  return options.length === 0 ? [] : [`Connection: ${options.join(', ')}`]
}
