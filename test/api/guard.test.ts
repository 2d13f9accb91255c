import dns from 'node:dns'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { problemSchema } from '../../src/api/problem.js'
import { ask } from '../support/http.js'
import { KeptConnection } from '../support/kept-connection.js'
import { exchange } from '../support/raw-http.js'
import { serveFake, type Served } from '../support/serve-fake.js'

const token = 'canary-token-0123456789'
const authorization = `Bearer ${token}`
const name = 'triton.default.svc.cluster.local'

type Looked = (error: null, address: string | LookupAddress[], family?: number) => void

/** Lets every name of this process lead to this machine, as the DNS of a cluster or of an attacker would. */
function resolveToLoopback(): void {
  const answer = (_name: string, options: LookupOptions, done: Looked): void =>
    options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)
  const spy = vi.spyOn(dns, 'lookup').mockImplementation(answer as unknown as typeof dns.lookup)
  onTestFinished(() => spy.mockRestore())
}

/** One request, written as it is, to the main port or another. */
function raw({ server }: Served, lines: readonly string[], port = server.address?.httpPort ?? 0) {
  return exchange({ host: '127.0.0.1', port }, [`${lines.join('\r\n')}\r\n\r\n`])
}

describe('a client that asks by a DNS name', () => {
  const host = `${name}:8000`

  it('passes with the token, whatever the name', async () => {
    const { url, metricsUrl } = await serveFake({ host: '0.0.0.0', token })
    for (const given of [host, name, `${name}.`, name.toUpperCase(), 'models.example.com', 'my_host_', ''])
      for (const at of [`${url}/api/v1/cameras`, `${url}/openapi.json`, `${metricsUrl}/metrics`, `${url}/`])
        expect([given, at, (await ask(at, { headers: { host: given, authorization } })).status]).toEqual([
          given,
          at,
          200,
        ])
  })

  it('passes with the token by fetch, which names a mode as browsers do', async () => {
    resolveToLoopback()
    const { url } = await serveFake({ token })
    const at = `${url.replace('127.0.0.1', name)}/api/v1/cameras`
    expect((await fetch(at, { headers: { authorization } })).status).toBe(200)
    expect((await fetch(at)).status).toBe(401)
    const body = JSON.stringify({ id: 'a', url: 'push:' })
    const headers = { authorization, 'content-type': 'application/json' }
    expect((await fetch(at, { method: 'POST', headers, body })).status).toBe(201)
  })

  it('is told what it lacks: the token, not another name', async () => {
    const { url } = await serveFake({ token })
    for (const given of [{}, { authorization: `${authorization}x` }])
      expect((await ask(`${url}/api/v1/cameras`, { headers: { host, ...given } })).status).toBe(401)
  })

  it('S6: never passes as a browser, with or without the token, and hears what allows the name', async () => {
    const { url } = await serveFake({ host: '0.0.0.0', token })
    for (const page of [
      { origin: `http://${host}` },
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
    ])
      for (const given of [{}, { authorization }]) {
        const reply = await ask(`${url}/api/v1/cameras`, { headers: { host, ...page, ...given } })
        expect([page, reply.status]).toEqual([page, 403])
        expect(problemSchema.parse(reply.json)).toMatchObject({
          code: 'GANTRY_FORBIDDEN',
          detail: `the Host header is not a name of this service: ${host}`,
          hint: expect.stringContaining('server.allowedHosts') as string,
        })
      }
    expect((await ask(`${url}/`, { headers: { host } })).status).toBe(403)
  })

  it('S6: does not pass where there is no token, unless the name is allowed', async () => {
    const closed = await serveFake()
    const reply = await ask(`${closed.url}/api/v1/cameras`, { headers: { host, authorization } })
    expect(reply.status).toBe(403)
    expect((reply.json as { hint: string }).hint).toContain('server.allowedHosts')
    const { url } = await serveFake({ allowedHosts: ['.cluster.local'] })
    for (const given of [host, name, `${name}.:80`])
      expect((await ask(`${url}/api/v1/cameras`, { headers: { host: given } })).status).toBe(200)
    expect((await ask(`${url}/api/v1/cameras`, { headers: { host: 'evil.example' } })).status).toBe(403)
  })

  it('lets the page of an allowed name work, and no page of another origin', async () => {
    const { url } = await serveFake({ allowedHosts: ['gantry.example'] })
    const add = (headers: Record<string, string>, id: string) =>
      ask(`${url}/api/v1/cameras`, { method: 'POST', headers, body: { id, url: 'push:' } })
    const own = { host: 'gantry.example', origin: 'https://gantry.example', 'sec-fetch-site': 'same-origin' }
    expect((await add(own, 'a')).status).toBe(201)
    expect((await add({ ...own, host: 'gantry.example:443' }, 'b')).status).toBe(201)
    expect(
      (await add({ host: 'gantry.example:8000', origin: 'http://gantry.example:8000' }, 'c')).status,
    ).toBe(201)
    for (const foreign of [
      { ...own, origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' },
      { ...own, origin: 'http://gantry.example:9000', 'sec-fetch-site': 'same-site' },
      { ...own, origin: 'null' },
      { host: 'evil.example', origin: 'https://gantry.example' },
    ])
      expect([foreign, (await add(foreign, 'x')).status]).toEqual([foreign, 403])
    const read = await ask(`${url}/api/v1/cameras`, { headers: own })
    expect([read.status, read.headers['access-control-allow-origin']]).toEqual([200, undefined])
  })

  it('takes no word of a proxy for it', async () => {
    const { url } = await serveFake({ allowedHosts: ['gantry.example'] })
    const headers = {
      host: 'evil.example',
      'x-forwarded-host': 'gantry.example',
      forwarded: 'host=gantry.example',
    }
    expect((await ask(`${url}/api/v1/cameras`, { headers })).status).toBe(403)
  })
})

describe('a request without Host, or with more than one', () => {
  it('is answered by HTTP/1.0 as it would be with one, on every port', async () => {
    const served = await serveFake({ host: '0.0.0.0', token })
    const { address } = served.server
    for (const port of [address?.httpPort, address?.metricsPort]) {
      expect(await raw(served, ['GET /healthz HTTP/1.0'], port)).toMatchObject({
        status: 200,
        json: { status: 'ok' },
      })
      expect((await raw(served, ['GET /metrics HTTP/1.0'], port)).status).toBe(401)
      const known = await raw(served, ['GET /metrics HTTP/1.0', `authorization: ${authorization}`], port)
      expect([known.status, known.text]).toEqual([200, expect.stringContaining('gantry_up 1') as string])
    }
    const open = await serveFake()
    expect((await raw(open, ['GET /api/v1/cameras HTTP/1.0'])).status).toBe(200)
    const withHost = await ask(`${open.url}/`, { method: 'OPTIONS' })
    expect((await raw(open, ['OPTIONS / HTTP/1.0'])).status).toBe(withHost.status)
  })

  it.each([
    ['where there is no token', {}, []],
    ['with the token', { host: '0.0.0.0', token }, [`authorization: ${authorization}`]],
    ['without the token that is set', { host: '0.0.0.0', token }, []],
  ])('R68: is answered as with one, whatever it asks for: %s', async (_, settings, headers) => {
    const served = await serveFake(settings)
    const { httpPort, metricsPort } = served.server.address ?? {}
    const targets = ['/healthz', '/readyz', '/metrics', '/api/v1/cameras', '/', '/none', '*']
    for (const port of [httpPort, metricsPort])
      for (const target of [...targets, 'http://127.0.0.1/healthz'])
        for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']) {
          const answer = async (version: string, ...host: string[]) => {
            const { status, text } = await raw(
              served,
              [`${method} ${target} HTTP/${version}`, ...host, ...headers, 'connection: close'],
              port,
            )
            return [method, target, status, target === '/metrics' ? '' : text]
          }
          const expected = await answer('1.1', 'host: 127.0.0.1')
          expect(await answer('1.0')).toEqual(expected)
          expect(await answer('1.0', 'host:')).toEqual(expected)
          expect(await answer('1.1', 'host:')).toEqual(expected)
        }
  })

  it('R68: keeps its connection where it asks for that', async () => {
    const { server } = await serveFake()
    for (const port of [server.address?.httpPort ?? 0, server.address?.metricsPort ?? 0]) {
      const connection = await KeptConnection.to({ host: '127.0.0.1', port })
      for (let count = 0; count < 3; count++) {
        connection.write('GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n')
        const { status, headers } = await connection.answer()
        expect([status, headers.get('connection')]).toEqual([200, 'keep-alive'])
      }
    }
  })

  it('is no page of another site either', async () => {
    const served = await serveFake()
    for (const host of [[], ['host:']])
      for (const line of ['origin: http://evil.example', 'sec-fetch-site: cross-site'])
        expect((await raw(served, ['GET /api/v1/cameras HTTP/1.0', ...host, line])).status).toBe(403)
  })

  it.each([
    ['none by HTTP/1.1', ['GET /healthz HTTP/1.1', 'connection: close']],
    ['none with an upgrade', ['GET /healthz HTTP/1.1', 'connection: upgrade', 'upgrade: h2c']],
    [
      'none with an upgrade to the stream',
      [
        'GET /api/v1/stream HTTP/1.1',
        'connection: upgrade',
        'upgrade: websocket',
        'sec-websocket-protocol: gantry.v1',
      ],
    ],
    ['two', ['GET /healthz HTTP/1.1', 'host: 127.0.0.1', 'Host: evil.example', 'connection: close']],
    ['two by HTTP/1.0', ['GET /api/v1/cameras HTTP/1.0', 'host: 127.0.0.1', 'host: 127.0.0.1']],
  ])('is refused where the protocol wants one: %s', async (_, lines) => {
    expect((await raw(await serveFake(), lines)).status).toBe(400)
  })
})

describe('a target with a scheme and a name', () => {
  const get = (target: string, host = '127.0.0.1') => [
    `GET ${target} HTTP/1.1`,
    `host: ${host}`,
    'connection: close',
  ]

  it('is the path, at that name and not at that of the Host header', async () => {
    const served = await serveFake({ allowedHosts: ['gantry.example'] })
    const status = async (lines: string[]) => (await raw(served, lines)).status
    expect(await status(get('http://127.0.0.1:8000/api/v1/cameras'))).toBe(200)
    expect(await status(get('HTTP://gantry.example/api/v1/cameras?x=1', 'evil.example'))).toBe(200)
    expect(await status(get('http://evil.example/api/v1/cameras'))).toBe(403)
    expect(await status(get('http://127.0.0.1@evil.example/api/v1/cameras'))).toBe(403)
    expect(await status(get('http://127.0.0.1/none'))).toBe(404)
  })

  it('is counted like the path', async () => {
    const served = await serveFake({ maxRequestsPerMinute: 1 })
    const statuses = [
      await raw(served, get('http://localhost/api/v1/cameras')),
      await raw(served, get('/api/v1/cameras')),
    ]
    expect(statuses.map(({ status }) => status)).toEqual([200, 429])
  })
})

describe('health', () => {
  const anyone: [string, Record<string, string>][] = [
    ['a kubelet by the address of the pod', { host: '10.1.2.3:8000', 'user-agent': 'kube-probe/1.34' }],
    ['a load balancer by a name', { host: name }],
    ['a wrong token', { authorization: 'Bearer wrong' }],
    ['credentials for somebody else', { authorization: 'Basic eDp5' }],
    ['a page of another site', { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }],
  ]

  it.each(anyone)('S5: tells %s its status and nothing else', async (_, headers) => {
    const { url, gantry } = await serveFake({ host: '0.0.0.0', token })
    for (const ready of [true, false]) {
      gantry.reasons = ready ? [] : ['engine 0 is restarting']
      const reply = await ask(`${url}/readyz`, { headers })
      expect([reply.status, reply.json]).toEqual([ready ? 200 : 503, { ready }])
      expect(reply.headers['access-control-allow-origin']).toBeUndefined()
      expect(reply.headers['cross-origin-resource-policy']).toBe('same-origin')
      expect((await ask(`${url}/healthz`, { headers })).json).toEqual({ status: 'ok' })
      const head = await ask(`${url}/readyz`, { method: 'HEAD', headers })
      expect([head.status, head.text]).toEqual([ready ? 200 : 503, ''])
      expect((await ask(`${url}/healthz`, { method: 'HEAD', headers })).status).toBe(200)
    }
  })

  it('tells its details with the token, by whatever name', async () => {
    const { url, gantry } = await serveFake({ token })
    gantry.reasons = ['engine 0 is restarting']
    const { status, json } = await ask(`${url}/readyz`, { headers: { host: name, authorization } })
    expect([status, json]).toEqual([503, expect.objectContaining({ reasons: gantry.reasons })])
  })

  it('S6: keeps its details from pages of other sites where no token is set', async () => {
    const { url } = await serveFake()
    expect((await ask(`${url}/readyz`)).json).toHaveProperty('engines')
    for (const headers of [
      { host: 'evil.example' },
      { origin: 'http://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
    ])
      expect((await ask(`${url}/readyz`, { headers })).json).toEqual({ ready: true })
  })

  it('tells an allowed page what the token allows', async () => {
    const origin = 'https://wall.example'
    const { url } = await serveFake({ token, allowedOrigins: [origin] })
    const known = await ask(`${url}/readyz`, { headers: { origin, authorization } })
    expect(known.headers['access-control-allow-origin']).toBe(origin)
    expect(known.json).toHaveProperty('engines')
    expect((await ask(`${url}/readyz`, { headers: { origin } })).json).toEqual({ ready: true })
  })

  it('takes no other method without the token', async () => {
    const { url } = await serveFake({ token })
    expect((await ask(`${url}/readyz`, { method: 'POST' })).status).toBe(401)
  })
})
