import { createServer, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { HttpGate, type HttpGateOptions } from '../../src/sources/http-gate.js'
import { networkFailures } from '../../src/sources/failure-reason.js'
import { authorizationFields, digestResponse } from '../support/digest-proof.js'

describe('HttpGate', () => {
  let server: Server
  let port: number
  let gate: HttpGate | undefined
  const asked: string[] = []
  const known = { user: Buffer.from('u'), password: Buffer.from('c4n@ry') }
  const given: (string | undefined)[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.host} ${request.headers.connection}`)
      const [path, query = ''] = (request.url ?? '').split('?')
      if (path === '/locked') {
        const header = request.headers.authorization
        given.push(header)
        const fields = authorizationFields(header ?? '')
        const isRight = fields.get('response') === digestResponse(fields, known, request.method ?? '')
        if (header === undefined || !isRight) {
          const challenge = 'Digest realm="cam", nonce="n", algorithm=SHA-256, qop="auth"'
          return void response.writeHead(401, { 'www-authenticate': challenge }).end()
        }
      }
      if (path === '/to') response.writeHead(302, { location: query }).end()
      else if (path === '/list') sendList(response, query)
      else response.end('pictures')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterEach(async () => {
    await gate?.close()
    asked.length = 0
    given.length = 0
    mistaken.length = 0
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const mistaken: boolean[] = []
  async function open(options: Partial<HttpGateOptions> = {}): Promise<HttpGate> {
    gate = await HttpGate.open({
      url: `http://127.0.0.1:${port}/live`,
      policy: new AddressPolicy(),
      nearness: 'loopback',
      playList: false,
      mistaken: () => mistaken.push(true),
      ...options,
    })
    return gate
  }

  /** Sends raw text to the gate and reads what comes until the end. */
  async function send(head: string): Promise<string> {
    gate ??= await open()
    const socket = connect(Number(new URL(gate.proxyUrl).port), '127.0.0.1')
    socket.write(head)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  }
  afterEach(() => (gate = undefined))

  const get = async (url: string) => send(`GET ${url} HTTP/1.1\r\nHost: x\r\n\r\n`)

  it('hands a request on with its own path, without what was meant for the proxy', async () => {
    const own = await open({ url: `http://127.0.0.1:${port}/a%20b/?q=1` })
    const answer = await send(
      `GET ${own.url} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*pictures/)
    expect(asked).toEqual([`GET /a%20b/?q=1 127.0.0.1:${port} close`])
    expect(own.problem).toBeUndefined()
  })

  it.each([
    ['http://169.254.169.254/latest', 'loopback', '169.254.169.254 is a metadata service'],
    ['https://[::ffff:169.254.169.254]/', 'loopback', 'metadata service'],
    ['http://127.0.0.1:PORT/', 'private', '127.0.0.1 is loopback, and the stream is private'],
    ['https://localhost:PORT/', 'public', 'is loopback, and the stream is public'],
    ['http://10.0.0.7/', 'public', '10.0.0.7 is private'],
  ] as const)('refuses %s to a %s stream', async (url, nearness, reason) => {
    const own = await open({ url: url.replace('PORT', String(port)), nearness })
    expect(await get(own.url)).toMatch(/^HTTP\/1.1 403 /)
    expect(asked).toEqual([])
    expect(own.problem).toMatchObject({ reason: expect.stringContaining(reason) as string, retry: 'slow' })
  })

  it('connects to the address it checked, and checks a name each time it is used', async () => {
    const answers = ['127.0.0.1', '169.254.169.254']
    const policy = new AddressPolicy(undefined, () =>
      Promise.resolve([{ address: answers.shift() ?? '', family: 4 }]),
    )
    const own = await open({ url: `http://rebound.test:${port}/`, policy })
    expect(await get(own.url)).toMatch(/^HTTP\/1.1 200 /)
    expect(await get(own.url)).toMatch(/^HTTP\/1.1 403 /)
    expect(asked).toEqual([`GET / rebound.test:${port} close`])
  })

  it('S3: fetches nothing that it has not named itself', async () => {
    const own = await open()
    const foreign = own.url.replace(/[0-9a-f]{16}/, '0'.repeat(16))
    for (const url of [foreign, `http://127.0.0.1:${port}/`, `https://127.0.0.1:${port}/`])
      expect(await get(url)).toMatch(/^HTTP\/1.1 400 /)
    expect(await send(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /)
    expect(asked).toEqual([])
  })

  it('names the place of a redirect anew', async () => {
    const own = await open({ url: `http://u:p@127.0.0.1:${port}/to?/beside` })
    const [, place = ''] = /\r\nLocation: (\S+)/.exec(await get(own.url)) ?? []
    expect(own.plain(place)).toBe(`http://127.0.0.1:${port}/beside`)
    const elsewhere = await open({ url: `http://u:p@127.0.0.1:${port}/to?https://[::1]:8/x` })
    const [, far = ''] = /\r\nLocation: (\S+)/.exec(await get(elsewhere.url)) ?? []
    expect(elsewhere.plain(far)).toBe('https://[::1]:8/x')
    expect(await get((await open({ url: `http://127.0.0.1:${port}/to?tcp://x/` })).url)).not.toContain(
      'Location',
    )
  })

  it('S14: logs in with what the camera demands, to the camera alone, and tells the decoder nothing of it', async () => {
    const own = await open({ url: `http://u:c4n%40ry@127.0.0.1:${port}/locked` })
    expect(own.url).not.toMatch(/u:|c4n/)
    const answer = await get(own.url)
    expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*pictures/)
    expect(answer).not.toMatch(/authenticat/i)
    expect(given.map((header) => header?.slice(0, 6))).toEqual([undefined, 'Digest'])
    await get(own.url)
    expect(given.map((header) => header?.slice(0, 6)).slice(2)).toEqual(['Digest'])
    given.length = 0
    // Another port is another address.
    const other = createServer((request, response) => {
      given.push(request.headers.authorization)
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const there = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`
    const led = await open({ url: `http://u:c4n%40ry@127.0.0.1:${port}/to?${there}` })
    const [, place = ''] = /\r\nLocation: (\S+)/.exec(await get(led.url)) ?? []
    expect(await get(place)).toMatch(/^HTTP\/1.1 401 /)
    expect(given).toEqual([undefined])
    expect(led.problem?.reason).toBe('the camera wants a login (401): set username and password')
    await new Promise((resolve) => other.close(resolve))
  })

  it.each([
    ['u:wrong', 'credentials refused (401)', 2],
    ['', 'the camera wants a login (401): set username and password', 1],
  ])('R65: says why %s is refused, having tried once', async (login, reason, tries) => {
    const at = login === '' ? '' : `${login}@`
    const own = await open({ url: `http://${at}127.0.0.1:${port}/locked` })
    expect(await get(own.url)).toMatch(/^HTTP\/1.1 401 /)
    expect(own.problem?.reason).toBe(reason)
    expect(given).toHaveLength(tries)
  })

  it('tells when a camera is a play list, or is none, and hands neither on as the other', async () => {
    const list = await open({ url: `http://127.0.0.1:${port}/list` })
    await get(list.url).catch(() => '')
    expect(mistaken).toHaveLength(1)
    const none = await open({ playList: true })
    expect(await get(none.url)).toMatch(/^HTTP\/1.1 502 /)
    expect(mistaken).toHaveLength(2)
    expect(none.problem?.reason).toBe('the play list cannot be read')
  })

  it.each(['', 'chunked', 'gzip', 'deflate'])(
    'writes a play list anew, however it comes: %s',
    async (form) => {
      const own = await open({ url: `http://127.0.0.1:${port}/list?${form}`, playList: true })
      const answer = await get(own.url)
      expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*\r\nContent-Type: application\/vnd.apple.mpegurl\r\n/)
      expect(own.plain(answer)).toContain(`\nhttp://127.0.0.1:${port}/1.ts\n`)
    },
  )

  it.each(['GET / HTTP/1.1', 'POST /api/v1/cameras HTTP/1.1', 'GET file:///etc/passwd HTTP/1.1', 'nonsense'])(
    'is no server: %s',
    async (line) => {
      expect(await send(`${line}\r\nHost: 127.0.0.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /)
    },
  )

  it('gives up on a head without end', async () => {
    expect(await send('x'.repeat(40_000))).toMatch(/^HTTP\/1.1 400 /)
  })

  it('says that the connection was refused when nobody listens', async () => {
    expect(await get((await open({ url: 'http://127.0.0.1:1/' })).url)).toMatch(/^HTTP\/1.1 502 /)
    expect(gate?.problem).toEqual({ reason: networkFailures.refused, retry: 'normal' })
  })
})

function sendList(response: ServerResponse, form: string): void {
  const list = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n1.ts\n#EXT-X-ENDLIST\n'
  const packed = { gzip: gzipSync(list), deflate: deflateSync(list) }[form]
  if (packed !== undefined) return void response.writeHead(200, { 'content-encoding': form }).end(packed)
  if (form === 'chunked') response.write(list.slice(0, 30))
  response.end(form === 'chunked' ? list.slice(30) : list)
}
