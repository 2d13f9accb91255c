import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { declineUpgrades } from '../../src/api/upgrade-offers.js'
import { KeptConnection } from '../support/kept-connection.js'
import { serveFake } from '../support/serve-fake.js'
import { servedModels } from '../support/served-models.js'

const token = 'canary-token-0123456789'

/** What clients write that offer another protocol, beside the fields of their request. */
const offers: [string, readonly string[]][] = [
  [
    'curl --http2',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'],
  ],
  [
    'the client of the JDK',
    [
      'Connection: Upgrade, HTTP2-Settings',
      'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAABgAGAAA',
      'Upgrade: h2c',
    ],
  ],
  ['TLS (RFC 2817)', ['Upgrade: TLS/1.0', 'Connection: Upgrade']],
  ['a protocol that nobody knows', ['upgrade: foo', 'connection: upgrade']],
  ['several', ['Upgrade: HTTP/2.0, SHTTP/1.3, IRC/6.9, RTA/x11', 'Connection: Upgrade']],
  ['a list with ours in it', ['Upgrade: h2c, websocket', 'Connection: keep-alive, Upgrade']],
  ['two fields', ['Upgrade: h2c', 'Upgrade: foo', 'Connection: Upgrade', 'Connection: keep-alive']],
]

/** A server that tells what it was asked. */
async function telling(): Promise<Server> {
  const server = createServer((request, response) => {
    let bytes = 0
    request.on('data', (chunk: Buffer) => (bytes += chunk.byteLength))
    request.on('end', () => {
      const { method, url, headers } = request
      response.end(JSON.stringify({ method, url, bytes, headers }), 'latin1')
    })
  })
  declineUpgrades(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** Two answers that differ in nothing but when they were given. */
const withoutTimes = (text: string): string => text.replace(/\d{13}/g, 'ms')

/** A request as bytes. */
function bytesOf(line: string, headers: readonly string[], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, '', body].join('\r\n')
}

describe.each(offers)('R68: an offer of %s', (_, offer) => {
  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'changes no answer to %s, and the connection is kept, on both ports',
    async (method) => {
      const { server } = await serveFake({ token })
      const { httpPort = 0, metricsPort = 0 } = server.address ?? {}
      const body = method === 'POST' ? JSON.stringify({ id: 'gate', url: 'push:' }) : ''
      const path = method === 'POST' ? '/api/v1/cameras' : '/metrics'
      const headers = [
        `Authorization: Bearer ${token}`,
        ...(body ? ['Content-Type: application/json', `Content-Length: ${body.length}`] : []),
      ]
      for (const port of [httpPort, metricsPort]) {
        const plain = await KeptConnection.to({ host: '127.0.0.1', port })
        plain.write(bytesOf(`${method} ${path}`, headers, body))
        const expected = await plain.answer(method)
        if (method === 'POST' && port === httpPort) {
          plain.write(bytesOf('DELETE /api/v1/cameras/gate', headers.slice(0, 1)))
          expect((await plain.answer()).status).toBe(204)
        }
        const connection = await KeptConnection.to({ host: '127.0.0.1', port })
        connection.write(bytesOf(`${method} ${path}`, [...offer, ...headers], body))
        const { status, text } = await connection.answer(method)
        expect([status, withoutTimes(text)]).toEqual([expected.status, withoutTimes(expected.text)])
        connection.write(bytesOf('GET /healthz', offer))
        expect((await connection.answer()).status).toBe(200)
        connection.write(bytesOf('GET /healthz', ['Connection: close']))
        expect((await connection.answer()).status).toBe(200)
      }
    },
  )

  it('needs the token and a Host as any request does', async () => {
    const { server } = await serveFake({ token })
    const connection = await KeptConnection.to({ host: '127.0.0.1', port: server.address?.httpPort ?? 0 })
    connection.write(bytesOf('POST /api/v1/cameras', [...offer, 'Content-Length: 5'], 'hello'))
    expect((await connection.answer()).status).toBe(401)
    connection.write(`GET /healthz HTTP/1.1\r\n${offer.join('\r\n')}\r\n\r\n`)
    expect((await connection.answer()).status).toBe(400)
  })

  it('changes no answer of the model server', async () => {
    const { http } = await servedModels({ echo: { shape: [-1], datatype: 'UINT8' } })
    const port = Number(new URL(http).port)
    const connection = await KeptConnection.to({ host: '127.0.0.1', port })
    const body = JSON.stringify({})
    connection.write(bytesOf('POST /v2/repository/index', [...offer, `Content-Length: ${body.length}`], body))
    expect((await connection.answer()).status).toBe(200)
    connection.write(bytesOf('GET /v2', offer))
    expect(JSON.parse((await connection.answer()).text)).toHaveProperty('extensions')
  })

  it('loses no byte of a body, however it comes', async () => {
    const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(await telling()) })
    const large = 'x'.repeat(3_000_000)
    connection.write(bytesOf('POST /large', [...offer, `Content-Length: ${large.length}`], large))
    expect(JSON.parse((await connection.answer()).text)).toMatchObject({ method: 'POST', bytes: 3_000_000 })
    connection.write(bytesOf('PUT /chunked', [...offer, 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'))
    connection.write('3\r\nyou\r\n0\r\n\r\n')
    expect(JSON.parse((await connection.answer()).text)).toMatchObject({ method: 'PUT', bytes: 8 })
    connection.write(bytesOf('POST /expects', [...offer, 'Expect: 100-continue', 'Content-Length: 5']))
    await once(connection.socket, 'data')
    connection.write('hello')
    expect(JSON.parse((await connection.answer()).text)).toMatchObject({ url: '/expects', bytes: 5 })
    for (const piece of bytesOf('POST /slow', [...offer, 'Content-Length: 5'], 'hello')) {
      connection.write(piece)
      await new Promise(setImmediate)
    }
    expect(JSON.parse((await connection.answer()).text)).toMatchObject({ url: '/slow', bytes: 5 })
  })

  it('loses no request that is sent behind it, and none before it', async () => {
    const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(await telling()) })
    const post = bytesOf('POST /d', [...offer, 'Content-Length: 5'], 'hello')
    connection.write(bytesOf('GET /a', []) + bytesOf('GET /b', offer) + bytesOf('GET /c', []) + post)
    const seen: unknown[] = []
    for (let count = 0; count < 4; count++) seen.push(JSON.parse((await connection.answer()).text))
    expect(seen).toMatchObject([
      { url: '/a', bytes: 0 },
      { url: '/b', bytes: 0 },
      { url: '/c', bytes: 0 },
      { url: '/d', bytes: 5 },
    ])
  })
})

it('R68: fields of an offer are taken off, and all others are left as they are', async () => {
  const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(await telling()) })
  const headers = [
    'X-Bytes: \xe9\xff',
    'Connection: x-mine,, Upgrade ,HTTP2-Settings',
    'upgrade: h2c',
    'http2-settings: AAMA',
    'X-Mine: 1',
    'Cookie: a=1',
    'Cookie: b=2',
  ]
  connection.write(bytesOf('GET /%20?x=%zz&y=~', headers))
  const { url, headers: seen } = JSON.parse((await connection.answer()).text) as Record<string, unknown>
  expect([url, seen]).toEqual([
    '/%20?x=%zz&y=~',
    { host: '127.0.0.1', 'x-bytes': '\xe9\xff', connection: 'x-mine', 'x-mine': '1', cookie: 'a=1; b=2' },
  ])
})

it('R68: a connection that is to be closed after the answer is closed', async () => {
  const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(await telling()) })
  connection.write(bytesOf('GET /', ['Connection: close, Upgrade', 'Upgrade: h2c']))
  const closed = once(connection.socket, 'close')
  expect((await connection.answer()).status).toBe(200)
  await closed
})

it('R68: an offer of WebSocket by HTTP/1.0 is none', async () => {
  const { server } = await serveFake()
  const connection = await KeptConnection.to({ host: '127.0.0.1', port: server.address?.httpPort ?? 0 })
  const offer = 'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n'
  connection.write(`GET /healthz HTTP/1.0\r\n${offer}\r\n`)
  expect((await connection.answer()).status).toBe(200)
  connection.write(`GET /api/v1/stream HTTP/1.0\r\n${offer}\r\n`)
  expect((await connection.answer()).status).toBe(426)
})

it('R68: more header fields than Node keeps are refused rather than cut off', async () => {
  const { server } = await serveFake()
  const connection = await KeptConnection.to({ host: '127.0.0.1', port: server.address?.httpPort ?? 0 })
  const many = Array.from({ length: 2_100 }, () => 'a:')
  const offer = ['Connection: Upgrade', 'Upgrade: h2c', ...many, 'Content-Length: 36']
  const closed = once(connection.socket, 'close')
  connection.write(bytesOf('POST /healthz', offer, 'DELETE /api/v1/cameras/a HTTP/1.1\r\n\r\n'))
  // By the version of Node.
  expect([400, 431]).toContain((await connection.answer()).status)
  await closed
})

it('R68: outlives clients that go away once they have offered', async () => {
  const server = await telling()
  for (let count = 0; count < 20; count++) {
    const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(server) })
    const closed = once(connection.socket, 'close')
    connection.write(bytesOf('POST /', ['Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 50'], 'x'))
    if (count % 2 === 0) connection.socket.resetAndDestroy()
    else connection.socket.destroy()
    await closed
  }
  const connection = await KeptConnection.to({ host: '127.0.0.1', port: portOf(server) })
  connection.write(bytesOf('GET /', []))
  expect((await connection.answer()).status).toBe(200)
})
