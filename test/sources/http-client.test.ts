import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { networkFailures, type Failure } from '../../src/sources/failure-reason.js'
import { HttpClient, type CameraAnswer, type HttpClientOptions } from '../../src/sources/http-client.js'
import { DigestGuard, type DigestHabits } from '../support/digest-server.js'
import { startHttpServer, startRawServer, type TestServer } from '../support/http-server.js'

const body = 'a picture, say'

describe('HttpClient', () => {
  const cut = new AbortController()
  const servers: TestServer[] = []
  let client: HttpClient | undefined

  afterEach(async () => {
    client?.close()
    await Promise.all(servers.splice(0).map((server) => server.close()))
  })

  async function serve(server: Promise<TestServer>): Promise<TestServer> {
    servers.push(await server)
    return server
  }

  function ask(url: string, options: Partial<HttpClientOptions> = {}): HttpClient {
    const common = { policy: new AddressPolicy(), nearness: 'loopback', signal: cut.signal } as const
    client = new HttpClient({ url, ...common, ...options })
    return client
  }

  async function textOf(answer: CameraAnswer | Failure): Promise<string> {
    if ('reason' in answer) return answer.reason
    const chunks: Buffer[] = []
    for await (const chunk of answer.body.bytes()) chunks.push(chunk)
    answer.leave()
    return Buffer.concat(chunks).toString()
  }

  const length = `Content-Length: ${body.length}\r\n`
  it.each([
    ['by length', `HTTP/1.1 200 OK\r\n${length}\r\n${body}`, 1],
    [
      'in chunks',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na p\r\nb\r\n${body.slice(3)}\r\n0\r\n\r\n`,
      1,
    ],
    [
      'in chunks of LF alone',
      `HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\na p\nb\n${body.slice(3)}\n0\n\n`,
      1,
    ],
    ['until the end', `HTTP/1.1 200 OK\r\n\r\n${body}`, 2],
    ['as HTTP/1.0', `HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n${length}\r\n${body}`, 2],
    ['as HTTP/1.0 with keep-alive', `HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n${length}\r\n${body}`, 1],
    ['with a farewell', `HTTP/1.1 200 OK\r\nConnection: close\r\n${length}\r\n${body}`, 2],
    ['behind a 100', `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\n${length}\r\n${body}`, 1],
    ['as ICY', `ICY 200 OK\r\n\r\n${body}`, 2],
  ])('reads an answer %s, twice', async (_, answer, connections) => {
    const server = await serve(
      startRawServer((_head, socket) => {
        const stays = connections === 1
        if (stays) socket.write(answer)
        else socket.end(answer)
      }),
    )
    const own = ask(`${server.base}/a`)
    expect([await textOf(await own.get()), await textOf(await own.get())]).toEqual([body, body])
    expect(server.connections().all).toBe(connections)
  })

  it('unpacks what is packed, and says where it ends too soon', async () => {
    const packed = gzipSync(body)
    const server = await serve(
      startHttpServer((request, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length })
        if (request.url === '/cut') response.write(packed.subarray(0, -9), () => response.destroy())
        else response.end(packed)
      }),
    )
    expect(await textOf(await ask(`${server.base}/`).get())).toBe(body)
    const answer = (await ask(`${server.base}/cut`).get()) as CameraAnswer
    await textOf(answer)
    expect(answer.body.state).toBe('cut')
  })

  it('asks again where the kept connection is gone', async () => {
    const asked = new Set<unknown>()
    const server = await serve(
      startRawServer((_head, socket) => {
        if (asked.has(socket)) return void socket.destroy()
        asked.add(socket)
        socket.write(`HTTP/1.1 200 OK\r\n${length}\r\n${body}`)
      }),
    )
    const own = ask(server.base)
    for (let times = 0; times < 3; times += 1) expect(await textOf(await own.get())).toBe(body)
    expect(server.connections().all).toBe(3)
  })

  const habits: readonly (readonly [string, DigestHabits, number])[] = [
    ['as in RFC 2069', {}, 1],
    ['MD5', { algorithm: 'MD5', qop: 'auth' }, 1],
    ['MD5 with both kinds of protection', { algorithm: 'MD5', qop: 'auth-int,auth' }, 1],
    ['MD5-sess', { algorithm: 'MD5-sess', qop: 'auth' }, 1],
    ['SHA-256', { algorithm: 'SHA-256', qop: 'auth' }, 1],
    ['nonces that get stale', { qop: 'auth', nonceUses: 2 }, 2],
    ['nonces for one request, without a word', { qop: 'auth', nonceUses: 1, tellsStale: false }, 4],
    ['the next nonce named', { qop: 'auth', nonceUses: 1, namesNext: true }, 1],
  ]
  it.each(habits)('logs in by digest: %s', async (_, habit, refused) => {
    const guard = new DigestGuard('user', 'p@ss "ü"', habit)
    const server = await serve(
      startHttpServer((request, response) => guard.admits(request, response) && response.end(body)),
    )
    const own = ask(
      `http://user:${encodeURIComponent('p@ss "ü"')}@127.0.0.1:${server.port}/snap.cgi?ch=1&a=%20b`,
    )
    for (let times = 0; times < 4; times += 1) expect(await textOf(await own.get())).toBe(body)
    expect(guard.refused).toBe(refused)
    expect(server.connections().all).toBe(1)
  })

  it.each(['basic', 'digest'])('tries a wrong password once: %s', async (scheme) => {
    let requests = 0
    const guard = new DigestGuard('user', 'right', { qop: 'auth' })
    const server = await serve(
      startHttpServer((request, response) => {
        requests += 1
        if (scheme === 'digest') guard.admits(request, response)
        else response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' }).end()
      }),
    )
    const failure = await ask(`http://user:wrong@127.0.0.1:${server.port}/`).get()
    expect(failure).toEqual({ reason: 'credentials refused (401)', retry: 'login' })
    expect(requests).toBe(2)
  })

  it('follows redirects, and gives its login to the camera alone', async () => {
    const seen: string[] = []
    const elsewhere = await serve(
      startHttpServer((request, response) => {
        seen.push(`elsewhere ${request.headers.authorization ?? 'none'}`)
        if (request.url === '/asks') response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' }).end()
        else response.end(body)
      }, '127.0.0.2'),
    )
    const server = await serve(
      startHttpServer((request, response) => {
        seen.push(`camera ${request.headers.authorization === undefined ? 'none' : 'login'}`)
        if (request.headers.authorization === undefined)
          response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' }).end()
        else if (request.url === '/beside') response.end(body)
        else response.writeHead(302, { location: decodeURIComponent((request.url ?? '').slice(1)) }).end()
      }),
    )
    const to = (place: string) =>
      ask(`http://u:p@127.0.0.1:${server.port}/${encodeURIComponent(place)}`).get()
    expect(await textOf(await to('/beside'))).toBe(body)
    expect(await textOf(await to(`${elsewhere.base}/`))).toBe(body)
    expect(await textOf(await to(`${elsewhere.base}/asks`))).toMatch(/^the camera wants a login \(401\)/)
    expect(seen.filter((line) => line.startsWith('elsewhere'))).toEqual(['elsewhere none', 'elsewhere none'])
    expect(await to('file:///etc/passwd')).toMatchObject({ retry: 'slow' })
    expect(await to('/loop')).toMatchObject({ reason: expect.stringContaining('redirect') as string })
  })

  it.each([
    ['http://169.254.169.254/latest', 'loopback', 'metadata service'],
    ['http://127.0.0.1:1/', 'public', '127.0.0.1 is loopback, and the stream is public'],
  ] as const)('S3: is not led to %s', async (place, nearness, reason) => {
    const server = await serve(
      startHttpServer((_request, response) => response.writeHead(302, { location: place }).end()),
    )
    const policy = new AddressPolicy(undefined, () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]))
    const failure = await ask(`http://127.0.0.1:${server.port}/`, { policy, nearness: 'loopback' }).get()
    if (nearness === 'loopback')
      expect(failure).toMatchObject({ reason: expect.stringContaining(reason) as string, retry: 'slow' })
    expect(await ask(place, { nearness }).get()).toMatchObject({
      reason: expect.stringContaining(reason) as string,
      retry: 'slow',
    })
  })

  it.each([
    [403, undefined, { reason: 'access forbidden (403)', retry: 'slow' }],
    [404, undefined, { reason: 'stream not found on the camera (404)', retry: 'normal' }],
    [429, '7', { reason: 'the camera answers with HTTP status 429', retry: 'normal', retryAfterMs: 7_000 }],
    [500, undefined, { reason: 'the server answered with an error (5xx)', retry: 'normal' }],
    [503, '2', { reason: 'the camera has no session left (busy)', retry: 'normal', retryAfterMs: 2_000 }],
    [
      503,
      '99999',
      { reason: 'the camera has no session left (busy)', retry: 'normal', retryAfterMs: 300_000 },
    ],
    [503, 'soon', { reason: 'the camera has no session left (busy)', retry: 'normal' }],
  ] as const)('tells what status %i means, Retry-After %s', async (status, retryAfter, failure) => {
    const server = await serve(
      startHttpServer((_request, response) => {
        response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end('no')
      }),
    )
    expect(await ask(server.base).get()).toEqual(failure)
  })

  it('says that nobody answers, or hangs up', async () => {
    expect(await ask('http://127.0.0.1:1/').get()).toEqual({
      reason: networkFailures.refused,
      retry: 'normal',
    })
    const server = await serve(startRawServer((_head, socket) => socket.destroy()))
    expect(await ask(server.base).get()).toEqual({ reason: networkFailures.reset, retry: 'normal' })
  })
})
