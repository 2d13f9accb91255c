import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { fakeCamera, fakeResult } from '../support/fake-gantry.js'
import { ask } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

const token = 'sixteen-characters-é'
const tokenProtocol = `gantry.token.${Buffer.from(token).toString('base64url')}`

type Options = Readonly<{ protocols?: string[]; headers?: Record<string, string>; path?: string }>

function connect(
  url: string,
  { protocols = ['gantry.v1'], headers = {}, path = '/api/v1/stream' }: Options = {},
): WebSocket {
  return new WebSocket(url.replace('http', 'ws') + path, protocols, { headers })
}

/** Status with which an upgrade is refused, or 101. */
function outcome(socket: WebSocket): Promise<number> {
  return new Promise((resolve) => {
    socket.on('error', () => undefined)
    socket.on('unexpected-response', (_request, response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    socket.on('open', () => {
      resolve(101)
      socket.close()
    })
  })
}

async function message(socket: WebSocket): Promise<Record<string, unknown>> {
  const [data] = (await once(socket, 'message')) as [Buffer]
  return JSON.parse(data.toString('utf8')) as Record<string, unknown>
}

describe('the stream', () => {
  it('becomes a client of the hub that hears what it subscribed to', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    const socket = connect(url)
    expect(await message(socket)).toMatchObject({ type: 'hello', protocol: 'gantry.v1' })
    expect(socket.protocol).toBe('gantry.v1')
    expect(socket.extensions).toBe('')
    socket.send(JSON.stringify({ type: 'subscribe' }))
    expect(await message(socket)).toMatchObject({ type: 'subscribed' })
    gantry.emit(fakeResult('a', 7))
    expect(await message(socket)).toMatchObject({ type: 'detections', cameraId: 'a', seq: 7 })
    expect(gantry.stream.clients).toBe(1)
    socket.close()
    await once(socket, 'close')
  })

  it.each([
    ['no sub-protocol', { protocols: [] }, 400],
    ['another sub-protocol', { protocols: ['graphql-ws'] }, 400],
    ['another path', { path: '/api/v1/other' }, 404],
    ['a foreign origin', { headers: { origin: 'http://evil.example' } }, 403],
    ['a null origin', { headers: { origin: 'null' } }, 403],
    ['a name that was rebound', { headers: { host: 'evil.example' } }, 403],
    ['no origin, as programs connect', {}, 101],
  ])('S6: with %s', async (_, options: Options, status) => {
    const { url } = await serveFake()
    expect(await outcome(connect(url, options))).toBe(status)
  })

  it.each([
    ['no token', {}, 401],
    ['a wrong token', { protocols: ['gantry.v1', 'gantry.token.AAAA'] }, 401],
    ['the token as a sub-protocol', { protocols: ['gantry.v1', tokenProtocol] }, 101],
    ['only the token as a sub-protocol', { protocols: [tokenProtocol] }, 400],
    [
      'the token as a header',
      { headers: { authorization: `Bearer ${encodeURI('sixteen-characters-x')}` } },
      401,
    ],
  ])('S5: with a token set and %s', async (_, options: Options, status) => {
    const { url } = await serveFake({ token })
    expect(await outcome(connect(url, options))).toBe(status)
  })

  it.each([
    ['the token', { protocols: ['gantry.v1', tokenProtocol] }, 101],
    ['the token as a header', { headers: { authorization: 'Bearer sixteen-characters' } }, 101],
    ['no token', {}, 401],
    [
      'the token and an origin',
      { protocols: ['gantry.v1', tokenProtocol], headers: { origin: 'http://gantry.plant.example' } },
      403,
    ],
  ])('S6: by a DNS name, with %s', async (_, { headers, protocols }: Options, status) => {
    const { url } = await serveFake({ token: headers?.['authorization'] ? 'sixteen-characters' : token })
    const named = { host: 'gantry.plant.example', ...headers }
    expect(await outcome(connect(url, { ...(protocols && { protocols }), headers: named }))).toBe(status)
  })

  it('S6: by an allowed name, also from its page', async () => {
    const { url } = await serveFake({ allowedHosts: ['gantry.plant.example'] })
    const headers = { host: 'gantry.plant.example:8000' }
    expect(await outcome(connect(url, { headers }))).toBe(101)
    const page = { ...headers, origin: 'http://gantry.plant.example:8000' }
    expect(await outcome(connect(url, { headers: page }))).toBe(101)
    expect(await outcome(connect(url, { headers: { ...headers, origin: 'http://evil.example' } }))).toBe(403)
  })

  it('never repeats the token back', async () => {
    const { url } = await serveFake({ token })
    const socket = connect(url, { protocols: ['gantry.v1', tokenProtocol] })
    await once(socket, 'open')
    expect(socket.protocol).toBe('gantry.v1')
    socket.terminate()
  })

  it('accepts as many clients as configured', async () => {
    const { url } = await serveFake({ maxStreamClients: 1 })
    const first = connect(url)
    await once(first, 'open')
    expect(await outcome(connect(url))).toBe(503)
    first.close()
    await once(first, 'close')
    await expect.poll(() => outcome(connect(url))).toBe(101)
  })

  it('closes a client that sends more than 64 KiB at once', async () => {
    const { url } = await serveFake()
    const socket = connect(url)
    await once(socket, 'open')
    socket.send('x'.repeat(65 * 1024))
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(1009)
  })

  it('asks for an upgrade when it is asked plainly', async () => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/api/v1/stream`)
    expect([reply.status, reply.headers.upgrade]).toEqual([426, 'websocket'])
  })

  it('outlives clients that go away in the middle of the handshake', async () => {
    const { url } = await serveFake()
    for (let i = 0; i < 20; i += 1) {
      const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'x' }
      const sent = request(`${url}/api/v1/stream`, { headers, agent: false })
      sent.on('error', () => undefined)
      sent.on('socket', (socket) => socket.on('connect', () => sent.destroy()))
      sent.end()
      await new Promise((resolve) => sent.on('close', resolve))
    }
    expect((await ask(`${url}/healthz`)).status).toBe(200)
  })

  it('closes its clients with 1001 when the service stops, and takes no new ones', async () => {
    const { url, server } = await serveFake()
    const socket = connect(url)
    await once(socket, 'open')
    const closed = once(socket, 'close') as Promise<[number]>
    server.refuse()
    expect(await outcome(connect(url))).toBe(503)
    await server.stop(2_000)
    expect((await closed)[0]).toBe(1001)
  })
})
