import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ask } from '../support/http.js'
import { KeptConnection } from '../support/kept-connection.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { descendants } from '../support/processes.js'
import { exchange } from '../support/raw-http.js'
import { TestService } from '../support/service.js'
import { runClient, tritonClients } from '../support/triton-clients.js'
import { until } from '../support/until.js'

const token = 'canary-token-0123456789'
const bearer = { authorization: `Bearer ${token}` }
const origin = 'https://wall.example'
const mebibyte = 1024 ** 2

/** `y` is `x`, bit by bit. */
const identity = buildOnnx({
  inputs: [{ name: 'x', type: 'uint8', shape: [mebibyte] }],
  outputs: [{ name: 'y', type: 'uint8', shape: [mebibyte] }],
  nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
})

const inferHeader = JSON.stringify({
  inputs: [{ name: 'x', datatype: 'UINT8', shape: [mebibyte], parameters: { binary_data_size: mebibyte } }],
  parameters: { binary_data_output: true },
})

/** A binary inference request for `identity`, from its first byte to its last. */
function inferBytes(tensor: Buffer): Buffer {
  const length = inferHeader.length + tensor.byteLength
  const head = [
    'POST /v2/models/identity/infer HTTP/1.1',
    'host: 127.0.0.1',
    `authorization: ${bearer.authorization}`,
    `inference-header-content-length: ${inferHeader.length}`,
    `content-length: ${length}`,
    'connection: close',
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n${inferHeader}`), tensor])
}

describe('one port for the service and its model server', () => {
  let service: TestService
  let dir: string

  const modelsReady = () =>
    until('models ready', async () => (await service.fetch('/v2/health/ready')).status === 200, 60_000)
  const modelServerPid = () =>
    descendants(service.pid).find(({ command }) => command.includes('model-server/main.js'))?.pid ?? 0

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gantry-shared-port-'))
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
    addModel(dir, 'identity', { onnx: identity, config: 'max_batch_size: 0' })
    service = await TestService.start({
      pipeline: { models: { repository: dir }, ensemble: 'red', modelServer: {} },
      server: { token, allowedOrigins: [origin] },
    })
    await modelsReady()
  }, 60_000)

  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  /** Requests one after the other over one connection that is kept. */
  function keptConnection(): (path: string, headers?: Record<string, string>) => Promise<string> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ports = new Set<number | undefined>()
    return async (path, headers = bearer) => {
      const sent = httpRequest(service.url + path, { agent, headers })
      sent.end()
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      ports.add(answer.socket.localPort)
      expect(ports.size, 'one connection for all').toBe(1)
      let text = ''
      for await (const chunk of answer) text += String(chunk)
      return `${answer.statusCode} ${text.slice(0, 12)}`
    }
  }

  it.each([
    ['at once', Number.POSITIVE_INFINITY],
    ['in pieces of 64 KiB and one byte', 65_537],
    ['in pieces of 1000 bytes', 1_000],
  ])('loses no byte of a tensor that comes %s', async (_, pieceBytes) => {
    const tensor = randomBytes(mebibyte)
    const bytes = inferBytes(tensor)
    const size = Math.min(pieceBytes, bytes.byteLength)
    const pieces = Array.from({ length: Math.ceil(bytes.byteLength / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    const answer = await exchange({ host: '127.0.0.1', port: service.httpPort }, pieces)
    expect(answer.status).toBe(200)
    expect(Buffer.from(answer.text, 'latin1').subarray(-mebibyte).equals(tensor)).toBe(true)
  })

  it('knows whom a request is for when it comes byte by byte', async () => {
    const lines = (path: string) =>
      `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer.authorization}\r\nconnection: close\r\n\r\n`
    const to = { host: '127.0.0.1', port: service.httpPort }
    for (const [path, text] of [
      ['/v2', '{"name":'],
      ['/healthz', ''],
      ['/v2x', 'GANTRY_NOT_FOUND'],
      ['/', '<!doctype html>'],
    ] as const) {
      const answer = await exchange(to, lines(path))
      expect(answer.text, path).toContain(text)
      expect(answer.status, path).toBe(path === '/v2x' ? 404 : 200)
    }
  })

  it('answers requests of both over one connection, whichever comes first', async () => {
    for (const paths of [
      ['/v2', '/readyz', '/v2/health/live', '/metrics', '/v2'],
      ['/readyz', '/v2', '/metrics', '/v2/health/ready'],
    ]) {
      const get = keptConnection()
      for (const path of paths) expect(await get(path), path).toMatch(/^200/)
    }
  })

  it('sends requests back with their bodies, and those that were sent without waiting', async () => {
    const camera = JSON.stringify({ id: 'pushed', url: 'push:' })
    const one = `GET /v2/health/live HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer.authorization}\r\n\r\n`
    const two = `POST /api/v1/cameras HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer.authorization}\r\ncontent-type: application/json\r\ncontent-length: ${camera.length}\r\nconnection: close\r\n\r\n${camera}`
    const { text } = await exchange({ host: '127.0.0.1', port: service.httpPort }, [one + two])
    expect(text).toContain('"id":"pushed"')
    expect((await service.fetch('/api/v1/cameras/pushed', { method: 'DELETE' })).status).toBe(204)
  })

  it('asks for the token and refuses other sites, over every kind of connection', async () => {
    for (const first of ['/v2', '/healthz']) {
      const get = keptConnection()
      await get(first)
      expect(await get('/v2', {})).toMatch(/^401 \{"error":/)
      expect(await get('/v2/none', {})).toMatch(/^401/)
      expect(await get('/api/v1/status', {})).toMatch(/^401/)
      expect(await get('/v2', { ...bearer, origin: 'https://evil.example' })).toMatch(/^403/)
      expect(await get('/v2', { ...bearer, host: 'evil.example', origin: 'http://evil.example' })).toMatch(
        /^403/,
      )
      expect(await get('/v2', { host: 'evil.example' })).toMatch(/^401/)
      expect(await get('/v2', { ...bearer, host: 'triton.default.svc.cluster.local:8000' })).toMatch(/^200/)
      expect(await get('/api/v1/status', { ...bearer, host: 'gantry.example' })).toMatch(/^200/)
      expect(await get('/v2', { ...bearer, origin })).toMatch(/^200/)
    }
    const { headers } = await ask(`${service.url}/v2`, { headers: { ...bearer, origin } })
    expect(headers).toMatchObject({
      'access-control-allow-origin': origin,
      'x-content-type-options': 'nosniff',
    })
  })

  it('tells anyone its health, over every kind of connection', async () => {
    const paths = ['/v2/health/live', '/v2/health/ready', '/readyz', '/healthz']
    for (const first of paths) {
      const get = keptConnection()
      await get(first, {})
      for (const path of paths)
        for (const headers of [{}, { host: '10.1.2.3:8000' }, { origin: 'https://evil.example' }])
          expect([path, await get(path, headers)]).toEqual([
            path,
            { '/readyz': '200 {"ready":tru', '/healthz': '200 {"status":"o' }[path] ?? '200 ',
          ])
      expect(await get('/v2/models/identity/ready', {})).toMatch(/^401/)
    }
  })

  it.each([
    ['GET /v2/health/live', [], 200, ''],
    ['HEAD /v2/health/ready', [], 200, ''],
    ['GET /readyz', [], 200, '{"ready":true}'],
    ['GET /v2', [], 401, 'token'],
    ['GET /v2', [`authorization: ${bearer.authorization}`], 200, '"name":'],
    ['GET /api/v1/status', [`authorization: ${bearer.authorization}`], 200, '"name":'],
    ['POST /v2/health/live', [], 401, 'token'],
  ])('answers HTTP/1.0, which has no Host: %s %j', async (line, headers, status, text) => {
    const bytes = `${[`${line} HTTP/1.0`, ...headers].join('\r\n')}\r\n\r\n`
    const answer = await exchange({ host: '127.0.0.1', port: service.httpPort }, [bytes])
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)])
  })

  it('R68: answers requests that offer HTTP/2 as all others, over every kind of connection', async () => {
    const offer =
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n'
    const head = (line: string) =>
      `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer.authorization}\r\n${offer}`
    const withBody = (line: string, body: string) =>
      `${head(line)}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const camera = withBody('POST /api/v1/cameras', JSON.stringify({ id: 'offered', url: 'push:' }))
    const remove = `${head('DELETE /api/v1/cameras/offered')}\r\n`
    const infer = inferBytes(randomBytes(mebibyte)).toString('latin1').replace('connection: close\r\n', offer)
    const requests = [
      [camera, 201],
      [infer, 200],
      [`${head('GET /v2')}\r\n`, 200],
      [remove, 204],
      [withBody('POST /v2/repository/index', '{}'), 200],
    ] as const
    for (const first of requests.keys()) {
      const connection = await KeptConnection.to({ host: '127.0.0.1', port: service.httpPort })
      for (const [bytes, status] of [...requests.slice(first), ...requests.slice(0, first)]) {
        connection.write(bytes)
        const answer = await connection.answer()
        const isGone = status === 204 && answer.status === 404
        expect([bytes.slice(0, 30), isGone ? 204 : answer.status]).toEqual([bytes.slice(0, 30), status])
      }
      await service.fetch('/api/v1/cameras/offered', { method: 'DELETE' })
    }
  })

  it.skipIf(tritonClients === undefined).each(['http', 'http_aio'])(
    'serves tritonclient by a DNS name: %s',
    async (kind) => {
      const suite = join(import.meta.dirname, '../clients/dns_name_suite.py')
      const address = `triton.default.svc.cluster.local:${service.httpPort}`
      const said = await runClient(
        tritonClients?.python ?? '',
        [suite, kind, address, token, 'identity'],
        60_000,
      )
      expect(JSON.parse(said)).toEqual({
        health_without_token: 'ok',
        metadata: 'ok',
        inference: 'ok',
        no_more_without_token: 'ok',
      })
    },
    70_000,
  )

  /** What is answered on one connection to requests that are written as they are, until `end` is in it or it is closed. */
  async function answered(bytes: string, end: string): Promise<string> {
    const socket = connect(service.httpPort, '127.0.0.1')
    let text = ''
    socket.on('data', (data: Buffer) => (text += data.toString('latin1'))).on('error', () => undefined)
    socket.write(bytes)
    await until(`an answer with ${end}`, () => text.includes(end) || socket.destroyed, 20_000)
    socket.destroy()
    return text
  }
  const auth = `authorization: ${bearer.authorization}\r\n`
  const health = `GET /v2/health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`
  const stream = `GET /api/v1/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: gantry.v1\r\n`

  it('S22: gives the stream to a connection that began with models, to those with the token alone', async () => {
    expect(await answered(`${health}${stream}${auth}\r\n`, '"type":"hello"')).toMatch(
      /HTTP\/1\.1 200 [^]*HTTP\/1\.1 101 [^]*"type":"hello"/,
    )
    const refused = await answered(`${health}${stream}\r\n`, 'GANTRY_UNAUTHORIZED')
    expect(refused).toMatch(/HTTP\/1\.1 401 /)
    expect(refused).toContain('content-security-policy')
  })

  it.each([
    [
      'two Host headers',
      `GET /api/v1/status HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n${auth}\r\n`,
    ],
    [
      'two Host headers for models',
      `GET /v2 HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n${auth}\r\n`,
    ],
    ['what is no HTTP', 'NONSENSE\r\n\r\n'],
    ['a path that cannot be read', `GET /v2/%zz HTTP/1.1\r\nhost: 127.0.0.1\r\n${auth}\r\n`],
    ['a model that is not there', `GET /v2/models/none HTTP/1.1\r\nhost: 127.0.0.1\r\n${auth}\r\n`],
    ['a route that is not there', `GET /none HTTP/1.1\r\nhost: 127.0.0.1\r\n${auth}\r\n`],
  ])('S23: answers %s in one form with the same headers, over every kind of connection', async (_, bytes) => {
    const parts = (text: string) => {
      const answer = /HTTP\/1\.1 \d{3} [^]*$/.exec(text)?.[0] ?? ''
      const [head = '', body = ''] = answer.split('\r\n\r\n')
      const fields = head
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(':')[0]?.toLowerCase() ?? '')
      const perConnection = new Set([
        'date',
        'connection',
        'keep-alive',
        'content-length',
        'transfer-encoding',
      ])
      return {
        status: head.split(' ')[1],
        type: /^content-type: (.*)$/im.exec(head)?.[1],
        fields: fields.filter((field) => !perConnection.has(field)).sort(),
        isProblem: body.includes('"code":"GANTRY_'),
      }
    }
    const own = `GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`
    const [adopted, kept] = await Promise.all(
      [health, own].map(async (first) => {
        const socket = connect(service.httpPort, '127.0.0.1')
        let text = ''
        socket.on('data', (data: Buffer) => (text += data.toString('latin1'))).on('error', () => undefined)
        socket.write(first)
        await until('the first answer', () => text.includes('\r\n\r\n'), 20_000)
        const before = text.length
        socket.write(bytes)
        await until(
          'the second answer',
          () => /HTTP\/1\.1 \d+[^]*\r\n\r\n[^]*\}/.test(text.slice(before)),
          20_000,
        )
        socket.destroy()
        return parts(text.slice(before))
      }),
    )
    expect(adopted).toEqual(kept)
    expect(adopted?.fields).toContain('content-security-policy')
  })

  it('ends a client that does not say what it wants', async () => {
    const socket = connect(service.httpPort, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('GET ')
    await once(socket, 'close')
  }, 20_000)

  it('keeps connections to itself while the model server is away', async () => {
    const get = keptConnection()
    process.kill(modelServerPid(), 'SIGKILL')
    // A request that was in it when it died is 503 as well, a moment before control knows.
    const away = async () => (await (await service.fetch('/v2')).text()).includes('is not running')
    await until('away', away, 5_000, 5)
    expect(await get('/v2')).toMatch(/^503 \{"error":/)
    await modelsReady()
    expect(await get('/v2')).toMatch(/^200/)
  }, 90_000)

  it('stops in good time with clients that keep their connections', async () => {
    await keptConnection()('/v2')
    const idle = connect(service.httpPort, '127.0.0.1')
    await once(idle, 'connect')
    const closed = once(idle, 'close')
    await service.end()
    await closed
  })
})
