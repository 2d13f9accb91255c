import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AddressPolicy, type Nearness } from '../../src/sources/address-policy.js'
import { HttpGate } from '../../src/sources/http-gate.js'
import { networkFailures } from '../../src/sources/network-failure.js'

describe('HttpGate', () => {
  let server: Server
  let port: number
  let gate: HttpGate | undefined
  const asked: string[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.connection}`)
      response.end('pictures')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterEach(() => {
    gate?.close()
    asked.length = 0
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  /** Sends raw text to the gate and reads what comes until the end. */
  async function send(
    head: string,
    from: Nearness = 'loopback',
    policy = new AddressPolicy(),
  ): Promise<string> {
    gate ??= await HttpGate.open(policy, from)
    const socket = connect(Number(new URL(gate.proxyUrl).port), '127.0.0.1')
    socket.write(head)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  }
  afterEach(() => (gate = undefined))

  it('hands a request on with its own path, without what was meant for the proxy', async () => {
    const url = `http://127.0.0.1:${port}/a%20b/?q=1`
    const answer = await send(
      `GET ${url} HTTP/1.1\r\nHost: 127.0.0.1\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*pictures/)
    expect(asked).toEqual(['GET /a%20b/?q=1 close'])
    expect(gate?.problem).toBeUndefined()
  })

  it('tunnels what is encrypted', async () => {
    const head = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`
    const inside = 'GET /inside HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    expect(await send(head + inside)).toMatch(/^HTTP\/1.1 200 Connection established\r\n\r\nHTTP\/1.1 200 OK/)
    expect(asked).toEqual(['GET /inside close'])
  })

  it.each([
    ['GET http://169.254.169.254/latest HTTP/1.1', 'loopback', '169.254.169.254 is a metadata service'],
    ['CONNECT [::ffff:169.254.169.254]:443 HTTP/1.1', 'loopback', 'metadata service'],
    ['GET http://127.0.0.1:PORT/ HTTP/1.1', 'private', '127.0.0.1 is loopback, and the stream is private'],
    ['CONNECT localhost:PORT HTTP/1.1', 'public', 'is loopback, and the stream is public'],
    ['GET http://10.0.0.7/ HTTP/1.1', 'public', '10.0.0.7 is private'],
  ] as const)('refuses %s to a %s stream', async (line, from, reason) => {
    const answer = await send(`${line.replace('PORT', String(port))}\r\nHost: x\r\n\r\n`, from)
    expect(answer).toMatch(/^HTTP\/1.1 403 /)
    expect(asked).toEqual([])
    expect(gate?.problem).toMatchObject({ reason: expect.stringContaining(reason) as string, retry: 'slow' })
  })

  it('connects to the address it checked, and checks a name each time it is used', async () => {
    const answers = ['127.0.0.1', '169.254.169.254']
    const policy = new AddressPolicy(undefined, () =>
      Promise.resolve([{ address: answers.shift() ?? '', family: 4 }]),
    )
    const head = `GET http://rebound.test:${port}/ HTTP/1.1\r\nHost: rebound.test\r\n\r\n`
    expect(await send(head, 'loopback', policy)).toMatch(/^HTTP\/1.1 200 /)
    expect(await send(head)).toMatch(/^HTTP\/1.1 403 /)
    expect(asked).toHaveLength(1)
  })

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
    expect(await send('GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1.1 502 /)
    expect(gate?.problem).toEqual({ reason: networkFailures.refused, retry: 'normal' })
  })
})
