import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { randomBytes } from 'node:crypto'
import { WebSocket, WebSocketServer } from 'ws'
import {
  serverMessageSchema,
  pictureHeaderSchema,
  type PictureHeader,
  type ServerMessage,
} from '../../../src/messages/stream-protocol.js'
import { defaultStreamLimits, type StreamLimits } from '../../../src/delivery/websocket/stream-limits.js'
import type { StreamResult } from '../../../src/delivery/websocket/stream-figures.js'
import { WebSocketHub } from '../../../src/delivery/websocket/websocket-hub.js'
import { silentLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

/** A hub behind a real WebSocket server on loopback. Its loop is that of the tests: how busy that is does not count, unless a test says so. */
export async function startHub(limits: Partial<StreamLimits> = {}, epoch = 'e1') {
  const settings = { service: 'test', version: '0.0.0', epoch }
  const notBusy = { idleLoad: 1, busyLoad: 2 }
  const hub = new WebSocketHub(settings, silentLog(), { ...defaultStreamLimits, ...notBusy, ...limits })
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false, maxPayload: 64 * 1024 })
  sockets.on('connection', (socket, request) => hub.attach(socket, request.socket))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const counts = new Map<string, number>()
  return {
    hub,
    port,
    /** Messages that ended so, from the start. */
    counted(result: StreamResult): number {
      for (const [ended, count] of Object.entries(hub.figures.take().messages))
        counts.set(ended, (counts.get(ended) ?? 0) + count)
      return counts.get(result) ?? 0
    },
    async stop() {
      await hub.stop()
      sockets.close()
      http.close()
      http.closeAllConnections()
    },
  }
}

export type Fixture = Awaited<ReturnType<typeof startHub>>

/** A client that keeps what it receives and checks every message against the published schema. */
export class TestClient {
  readonly messages: ServerMessage[] = []
  readonly texts: string[] = []
  readonly pictures: { header: PictureHeader; jpeg: Buffer; before: number }[] = []
  closed: { code: number; reason: string } | undefined

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#picture(data)
      else {
        this.texts.push(data.toString())
        this.messages.push(serverMessageSchema.parse(JSON.parse(data.toString())))
      }
    })
    socket.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }))
    socket.on('error', () => undefined)
  }

  static async connect(port: number): Promise<TestClient> {
    const client = new TestClient(new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false }))
    await client.next('hello')
    return client
  }

  /** Connects and subscribes. */
  static async subscribed(port: number, subscription: object = {}): Promise<TestClient> {
    const client = await TestClient.connect(port)
    client.send({ type: 'subscribe', ...subscription })
    await client.next('subscribed')
    return client
  }

  send(message: object | string): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  of<Type extends ServerMessage['type']>(type: Type): Extract<ServerMessage, { type: Type }>[] {
    return this.messages.filter((m): m is Extract<ServerMessage, { type: Type }> => m.type === type)
  }

  /** The `count`th message of a type, waited for. */
  next<Type extends ServerMessage['type']>(type: Type, count = 1, withinMs = 10_000) {
    return until(`message ${count} of type ${type}`, () => this.of(type)[count - 1], withinMs)
  }

  whenClosed(withinMs = 10_000): Promise<{ code: number; reason: string }> {
    return until('close of the client', () => this.closed, withinMs)
  }

  #picture(data: Buffer): void {
    const headerBytes = data.readUInt32BE(0)
    const header = pictureHeaderSchema.parse(JSON.parse(data.toString('utf8', 4, 4 + headerBytes)))
    this.pictures.push({ header, jpeg: data.subarray(4 + headerBytes), before: this.messages.length })
  }
}

/** A masked text frame, as a client sends it. */
export function clientFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const mask = randomBytes(4)
  const header = Buffer.from([0x81, 0x80 | Math.min(payload.length, 126)])
  const extended = Buffer.alloc(payload.length > 125 ? 2 : 0)
  if (payload.length > 125) extended.writeUInt16BE(payload.length)
  const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  return Buffer.concat([header, extended, mask, masked])
}

/** Subscribes over a bare socket, then reads nothing more. `read()` gives what the server sent so far, as raw bytes. */
export async function deafClient(port: number, subscription: object = {}): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(
    'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  socket.write(clientFrame(JSON.stringify({ type: 'subscribe', ...subscription })))
  let seen = ''
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    seen += chunk.toString('latin1')
    if (seen.includes('"subscribed"')) break
  }
  socket.pause()
  return socket
}
