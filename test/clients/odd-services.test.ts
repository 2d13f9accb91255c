import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { afterEach, describe, expect, it } from 'vitest'
import { connect } from '../../clients/typescript/src/node.js'
import { detectionsMessage } from '../support/detections.js'
import { streamReaders, type StreamReader } from '../support/stream-readers.js'
import { until } from '../support/until.js'

type Said = Readonly<{ type: string; resumeAfter?: string; atMs: number }>
type Line = Readonly<{ send(message: object | string | Buffer): void; socket: WebSocket }>

type How = readonly [
  answer: (line: Line, said: Said, count: number) => void,
  refuses?: (times: number) => string | undefined,
]

/** Speaks `gantry.v1` as a test says: what a service of another version, or one that is hard pressed, may do. */
class OddService {
  readonly said: Said[] = []
  /** When it was asked for a stream, in monotonic ms. */
  readonly asked: number[] = []
  lines = 0
  readonly #server: Server
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'gantry.v1' })

  private constructor(...[answer, refuses = () => undefined]: How) {
    // A browser asks by HTTP for the reason.
    this.#server = createServer((_, response) => {
      const refusal = refuses(this.asked.length)
      if (refusal === undefined) response.writeHead(426).end()
      else response.socket?.end(refusal)
    })
    this.#server.on('upgrade', (request, socket, head) => {
      this.asked.push(performance.now())
      const refusal = refuses(this.asked.length)
      if (refusal !== undefined) return void socket.end(refusal)
      this.#sockets.handleUpgrade(request, socket, head, (client) => {
        this.lines += 1
        const line: Line = {
          socket: client,
          send: (message) =>
            client.send(
              typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message),
            ),
        }
        line.send({ type: 'hello', protocol: 'gantry.v1', service: 'odd', version: '9', cursor: 'a-1' })
        client.on('message', (data: Buffer) => {
          const said = { ...(JSON.parse(data.toString()) as Said), atMs: performance.now() }
          this.said.push(said)
          answer(line, said, this.said.filter(({ type }) => type === said.type).length)
        })
      })
    })
  }

  static async start(...how: How): Promise<OddService> {
    const service = new OddService(...how)
    service.#server.listen(0, '127.0.0.1')
    await once(service.#server, 'listening')
    return service
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get subscriptions(): readonly Said[] {
    return this.said.filter(({ type }) => type === 'subscribe')
  }

  stop(): void {
    for (const client of this.#sockets.clients) client.terminate()
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

const subscribed = { type: 'subscribed', cameras: ['*'], labels: [], minScore: 0 }
const pong = { type: 'pong', at: '2026-11-20T08:15:30.120Z' }
const result = (cursor: string) => ({ type: 'detections', cursor, ...detectionsMessage({}) })
const refused = (code: string) => ({ type: 'error', code, message: 'not that', hint: 'Another.' })

describe.each(streamReaders)('$name, at a service that', ({ read }) => {
  const ends: (() => void | Promise<void>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function at(...how: How): Promise<Readonly<{ service: OddService; reader: StreamReader }>> {
    const service = await OddService.start(...how)
    ends.push(() => service.stop())
    const reader = read({ url: service.url })
    ends.push(() => reader.close())
    return { service, reader }
  }

  it('says more than this version knows, or something twice, passes over that', async () => {
    const { reader } = await at(({ send }, { type }) => {
      if (type === 'ping') return send(pong)
      send({ ...subscribed, newOption: 1 })
      send({ type: 'weather', cursor: 'a-99' })
      send('no JSON')
      send(Buffer.from([0, 0, 0, 200, 1]))
      send({ ...result('a-2'), newField: { x: 1 } })
      send(result('a-2'))
      send(result('a-1'))
      send(result('a-3'))
    })
    await reader.more(2)
    expect(reader.cursors).toEqual(['a-2', 'a-3'])
    expect(reader.states.map(({ state }) => state)).toEqual(['connecting', 'open'])
  })

  it('has another time, tells that time', async () => {
    const { reader } = await at(({ send }, { type }) => {
      if (type === 'ping') send({ type: 'pong', at: new Date(Date.now() + 3_600_000).toISOString() })
      else send(subscribed)
      send(result(`a-${Math.round(performance.now())}`))
    })
    await reader.more(2)
    await reader.close()
    expect(Math.abs((reader.aheadMs ?? 0) - 3_600_000)).toBeLessThan(5_000)
  })

  it('R120: knows nothing of the cursor, is told by a gap and goes on without one', async () => {
    const { service, reader } = await at(({ send, socket }, { type, resumeAfter }, count) => {
      if (type === 'ping') return send(pong)
      if (resumeAfter !== undefined) return send(refused('GANTRY_CURSOR'))
      send(subscribed)
      send(result(`a-${count + 1}`))
      if (count === 1) socket.terminate()
    })
    await reader.more(2)
    expect(reader.messages.map(({ type }) => type)).toEqual(['detections', 'gap', 'detections'])
    expect(service.subscriptions.map(({ resumeAfter }) => resumeAfter)).toEqual([undefined, 'a-2', undefined])
  })

  it('wants to be asked less often, asks again', async () => {
    const { service, reader } = await at(({ send }, { type }, count) => {
      if (type === 'ping') return send(pong)
      if (count === 1) return send(refused('GANTRY_RATE_LIMITED'))
      send(subscribed)
      send(result('a-2'))
    })
    await reader.more(1)
    expect(service.lines).toBe(1)
  })

  it('is older than pings, asks it no more', async () => {
    const { service, reader } = await at(({ send }, { type }) => {
      if (type === 'ping') return send(refused('GANTRY_WS_MESSAGE'))
      send(subscribed)
      const timer = setInterval(() => send(result(`a-${Math.round(performance.now())}`)), 100)
      ends.push(() => clearInterval(timer))
    })
    // Longer than from one ping to the next.
    await reader.more(45)
    expect([service.lines, service.said.filter(({ type }) => type === 'ping').length]).toEqual([1, 1])
  })

  it('R121: closes for good, ends with what it said', async () => {
    const { reader } = await at(({ socket }) => socket.close(1008, 'too many bad messages'))
    await until('its end', () => reader.hasEnded)
    expect(reader.failed).toMatchObject({
      code: 'GANTRY_CLIENT_CLOSED',
      message: expect.stringContaining('1008: too many bad messages') as string,
    })
  })

  it.each([1000, 1001, 1011, 1012, 1013])('R121: closes with %d, tries again', async (code) => {
    const { service, reader } = await at(({ socket, send }, { type }) => {
      if (service.lines === 1) return socket.close(code, 'not now')
      if (type === 'ping') return send(pong)
      send(subscribed)
      send(result('a-2'))
    })
    await reader.more(1)
  })

  it.each([
    [429, 'Too Many Requests'],
    [503, 'Service Unavailable'],
  ])('R121: refuses with %d and says for how long, waits so long', async (status, words) => {
    const body = JSON.stringify({ code: 'GANTRY_RATE_LIMITED', detail: 'too often', hint: 'Wait.' })
    const refusal = `HTTP/1.1 ${status} ${words}\r\nretry-after: 2\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const { service, reader } = await at(
      ({ send }, { type }) => {
        if (type === 'ping') return send(pong)
        send(subscribed)
        send(result('a-2'))
      },
      (times) => (times <= 1 ? refusal : undefined),
    )
    await reader.more(1)
    const [first = 0, second = 0] = service.asked
    expect(second - first).toBeGreaterThanOrEqual(1_990)
  })
})

it('handlers may speak of the stream that calls them, and close it', async () => {
  const service = await OddService.start(({ send }, { type }, count) => {
    if (type === 'ping') return send(pong)
    send(subscribed)
    for (const position of [2, 3, 4]) send(result(`a-${count + position}`))
  })
  const cursors: (string | undefined)[] = []
  const stream = connect({
    url: service.url,
    onState: () => cursors.push(stream.cursor),
    onDetections: ({ cursor }) => {
      cursors.push(cursor)
      stream.close()
    },
  })
  await until('its end', () => stream.state.state === 'closed')
  expect(cursors).toEqual([undefined, undefined, 'a-3', undefined])
  const never = connect({ url: service.url })
  never.close()
  for await (const message of never) throw new Error(message.type)
  expect(service.lines).toBe(1)
  service.stop()
})
