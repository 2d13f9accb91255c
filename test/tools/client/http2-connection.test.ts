import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HeaderFields } from '../../../src/tools/client/hpack-decoder.js'
import type { HeaderField } from '../../../src/tools/client/hpack-tables.js'
import { Http2Connection } from '../../../src/tools/client/http2-connection.js'
import { serverTarget } from '../../../src/tools/client/server-url.js'
import { until } from '../../support/until.js'

type Answer = Readonly<{
  heads: readonly Readonly<Record<string, string>>[]
  body: Buffer
  /** Of one that failed. */
  cause?: string | undefined
  isUntouched?: boolean
}>
type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

const fields: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', '127.0.0.1'],
  [':path', '/service/Method'],
  ['te', 'trailers'],
]

function connect(port: number): Http2Connection {
  const connection = new Http2Connection(serverTarget(`grpc://127.0.0.1:${port}`, undefined), {})
  onTestFinished(() => connection.close())
  return connection
}

/** Node's own server, which knows nothing of ours. */
async function served(onStream: OnStream, options: ServerOptions = {}) {
  const server: Http2Server = createServer(options)
  const sessions: ServerHttp2Session[] = []
  server.on('session', (session) => sessions.push(session))
  server.on('stream', (stream, headers) => {
    // Tests cut some off.
    stream.on('error', () => undefined)
    onStream(stream, headers)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { server, sessions, port, connection: connect(port) }
}

function ask(connection: Http2Connection, ...body: readonly Uint8Array[]): Promise<Answer> {
  return new Promise((resolve) => {
    const heads: Readonly<Record<string, string>>[] = []
    const chunks: Buffer[] = []
    const answer = () => ({ heads, body: Buffer.concat(chunks) })
    connection.request(fields, body, {
      headers: (head: HeaderFields) => heads.push(Object.fromEntries(head)),
      data: (bytes) => chunks.push(bytes),
      end: () => resolve(answer()),
      failed: (cause, isUntouched) => resolve({ ...answer(), cause: cause?.message, isUntouched }),
    })
  })
}

/** Gives back what comes, with trailers. */
const echo: OnStream = (stream, headers) => {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', () => {
    stream.respond({ ':status': 200, path: headers[':path'] }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.concat(chunks))
  })
}

const small = Buffer.from('a request')
const large = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, index) => index % 251))
const plain: OnStream = (stream) => {
  stream.respond()
  stream.end('answer')
}

describe('a connection of HTTP/2', () => {
  it.each<[string, ServerOptions]>([
    ['as it is', {}],
    ['with small windows', { settings: { initialWindowSize: 1_000 } }],
    ['with large frames', { settings: { maxFrameSize: 2 ** 20, initialWindowSize: 2 ** 24 } }],
    ['without a table of headers', { settings: { headerTableSize: 0 } }],
    ['with a small table of headers', { settings: { headerTableSize: 100 }, maxDeflateDynamicTableSize: 64 }],
    ['that takes two requests at once', { settings: { maxConcurrentStreams: 2 } }],
    ['that fills its frames', { paddingStrategy: constants.PADDING_STRATEGY_MAX }],
  ])('sends requests to a server %s, and takes answers', async (_, options) => {
    const { connection, sessions } = await served(echo, options)
    for (const body of [small, large, small]) {
      const answers = await Promise.all(Array.from({ length: 5 }, () => ask(connection, body)))
      for (const { heads, body: answered, cause } of answers) {
        expect(cause).toBeUndefined()
        expect(heads).toEqual([
          expect.objectContaining({ ':status': '200', path: '/service/Method' }),
          { 'grpc-status': '0' },
        ])
        expect(answered.equals(body)).toBe(true)
      }
    }
    expect(sessions).toHaveLength(1)
  })

  it('sends a body of several parts', async () => {
    const { connection } = await served(echo)
    const { body } = await ask(connection, small, large, small)
    expect(body.equals(Buffer.concat([small, large, small]))).toBe(true)
  })

  it('reads headers of all kinds, and those that fill several frames', async () => {
    const words = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`x-${index}`, `${'é ~%'.repeat(index * 10)}${index}`]),
    )
    const { connection } = await served((stream) => {
      stream.additionalHeaders({ ':status': 103, link: '<early>' })
      stream.respond(words)
      stream.end('answer')
    })
    for (let turn = 0; turn < 3; turn++) {
      const { heads, body } = await ask(connection, small)
      expect(heads).toEqual([expect.objectContaining({ ':status': '200', ...words })])
      expect(body.toString()).toBe('answer')
    }
  })

  it('takes an answer to a request that was not read', async () => {
    const { connection } = await served(
      (stream) => {
        stream.respond({ ':status': 200, 'grpc-status': '8' }, { endStream: true })
      },
      { settings: { initialWindowSize: 1_000 } },
    )
    for (let turn = 0; turn < 3; turn++)
      expect(await ask(connection, large)).toMatchObject({
        heads: [{ 'grpc-status': '8' }],
        body: Buffer.alloc(0),
      })
  })

  it('answers pings, also within an answer', async () => {
    const { connection, sessions } = await served(echo)
    await ask(connection, small)
    const echoed = ask(connection, large)
    const pong = await new Promise<Buffer>((resolve, reject) =>
      sessions[0]!.ping(Buffer.from('12345678'), (error, _, payload) =>
        error === null ? resolve(payload) : reject(error),
      ),
    )
    expect(pong.toString()).toBe('12345678')
    expect((await echoed).body.equals(large)).toBe(true)
  })

  it('follows settings that change, with requests under way', async () => {
    const { connection, sessions } = await served(echo, { settings: { initialWindowSize: 0 } })
    const held = ask(connection, large)
    await until('the settings', () => connection.isEstablished)
    sessions[0]!.settings({ initialWindowSize: 70_000, headerTableSize: 0, maxFrameSize: 20_000 })
    expect((await held).body.equals(large)).toBe(true)
    expect((await ask(connection, small)).body.equals(small)).toBe(true)
  })

  it('tells a request that is reset, and goes on', async () => {
    let code: number = constants.NGHTTP2_INTERNAL_ERROR
    const { connection } = await served((stream) => stream.close(code))
    expect(await ask(connection, small)).toMatchObject({
      cause: expect.stringContaining('code 2') as string,
      isUntouched: false,
    })
    code = constants.NGHTTP2_REFUSED_STREAM
    expect(await ask(connection, small)).toMatchObject({ isUntouched: true })
    expect(connection.isOpen).toBe(true)
  })

  it('is told that the server goes away: what is under way is answered, what was not looked at is told', async () => {
    const streams: ServerHttp2Stream[] = []
    const { connection, sessions } = await served((stream) => streams.push(stream))
    const first = ask(connection, small)
    const begun = await until('the request', () => streams[0])
    sessions[0]!.goaway(0, begun.id)
    await until('the end', () => !connection.isOpen)
    plain(begun, {})
    expect((await first).body.toString()).toBe('answer')
  })

  it('gives back requests that a server that goes away has not looked at', async () => {
    const { connection, sessions, server } = await served(() => undefined)
    server.once('stream', () => sessions[0]!.goaway(0, 1))
    const answers = Promise.all([ask(connection, small), ask(connection, small)])
    await until('the end', () => !connection.isOpen)
    sessions[0]!.destroy()
    expect(await answers).toMatchObject([{ isUntouched: false }, { isUntouched: true }])
  })

  it('cancels a request', async () => {
    let cancelled: (code: number) => void
    const seen = new Promise<number>((resolve) => (cancelled = resolve))
    const { connection } = await served((stream) => {
      stream.on('close', () => cancelled(stream.rstCode))
    })
    const unheard = { headers: fail, data: fail, end: fail, failed: fail }
    const stream = connection.request(fields, [small], unheard)
    await until('the settings', () => stream.id > 0)
    connection.cancel(stream)
    expect(await seen).toBe(constants.NGHTTP2_CANCEL)
  })

  it('ends when nothing is under way', async () => {
    const { connection, sessions } = await served(echo)
    const answer = ask(connection, large)
    connection.closeWhenIdle()
    expect(connection.isOpen).toBe(false)
    expect((await answer).body.equals(large)).toBe(true)
    await new Promise<void>((resolve) =>
      sessions[0]!.closed ? resolve() : sessions[0]!.once('close', resolve),
    )
  })

  it.each([
    ['text', 'SSH-2.0-OpenSSH_9.2\r\n', 'does not speak HTTP/2'],
    ['HTTP/1.1', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'does not speak HTTP/2'],
    ['another frame before its settings', '\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0', 'does not speak HTTP/2'],
    ['nothing', '', undefined],
  ])('fails with a server that says %s', async (_, said, cause) => {
    const tcp = createTcpServer((socket) => void socket.on('error', () => undefined).end(said))
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void tcp.close())
    const connection = connect((tcp.address() as AddressInfo).port)
    const answer = await ask(connection, small)
    expect(answer.isUntouched).toBe(false)
    if (cause !== undefined) expect(answer.cause).toContain(cause)
    expect(connection).toMatchObject({ isOpen: false, isEstablished: false })
  })
})

function fail(): never {
  throw new Error('nothing was to be told')
}
