import { describe, expect, it } from 'vitest'
import { apiRoutes, metricsPortRoutes } from '../../src/api/routes/index.js'
import { createApp } from '../../src/api/app.js'
import { pino } from 'pino'
import { FakeGantry } from '../support/fake-gantry.js'
import { ask } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

const token = 'canary-token-0123456789'
const bearer = { authorization: `Bearer ${token}` }

describe('the inventory of routes', () => {
  it('lets nothing but the status of health and the description of the API be asked without the token', () => {
    const tokenless = [...apiRoutes, ...metricsPortRoutes]
      .filter(({ auth }) => auth !== 'token')
      .map(({ path, auth }) => `${path} ${auth}`)
    expect([...new Set(tokenless)].sort()).toEqual([
      '/docs open',
      '/docs/style.css open',
      '/docs/{folder}/{page} open',
      '/docs/{guide} open',
      '/healthz health',
      '/readyz health',
    ])
  })

  it.each(
    apiRoutes.filter(({ auth }) => auth === 'token').map(({ method, path }) => [method, path] as const),
  )('S5: %s %s needs the token', async (method, path) => {
    const { url } = await serveFake({ token })
    const at = `${url}${path.replace('{id}', 'a')}`
    const without = await ask(at, { method })
    expect(without.status).toBe(401)
    expect(without.headers['www-authenticate']).toBe('Bearer realm="gantry"')
    expect((await ask(at, { method, headers: { authorization: `Bearer ${token}x` } })).status).toBe(401)
    expect((await ask(at, { method, headers: bearer })).status).not.toBe(401)
  })

  it('holds on the metrics port and for paths that do not exist', async () => {
    const { url, metricsUrl } = await serveFake({ token })
    expect((await ask(`${metricsUrl}/metrics`)).status).toBe(401)
    expect((await ask(`${metricsUrl}/metrics`, { headers: bearer })).status).toBe(200)
    expect((await ask(`${url}/api/v1/none`)).status).toBe(401)
    expect((await ask(`${url}/healthz`)).status).toBe(200)
  })

  it('S5: takes no route without a rule', () => {
    const context = {
      gantry: new FakeGantry(),
      draining: () => false,
      documents: { openapi: () => '', asyncapi: () => '', page: () => '', guide: () => undefined },
    }
    const settings = {
      host: '127.0.0.1',
      allowedOrigins: [],
      allowedHosts: [],
      maxBodyBytes: 1024,
      maxRequestsPerMinute: 0,
    }
    const app = createApp([], context, settings, pino({ level: 'silent' }))
    expect(() => app.get('/new', () => 'x')).toThrow('route /new has no auth rule')
  })
})

describe('requests that another site caused', () => {
  const body = { id: 'a', url: 'rtsp://127.0.0.1/a' }

  it.each([
    ['a foreign origin', { origin: 'http://evil.example' }],
    ['a null origin', { origin: 'null' }],
    ['a name that was rebound', { host: 'evil.example' }],
    ['a foreign form', { 'sec-fetch-site': 'cross-site' }],
  ])('S6, S7: are refused: %s', async (_, headers) => {
    const { url, gantry } = await serveFake()
    const reply = await ask(`${url}/api/v1/cameras`, { method: 'POST', body, headers })
    expect(reply.status).toBe(403)
    expect(gantry.cameras()).toEqual([])
    expect((await ask(`${url}/api/v1/cameras`, { headers })).status).toBe(403)
  })

  it('may come from an origin that is allowed, with CORS headers and a preflight', async () => {
    const origin = 'https://wall.example'
    const { url } = await serveFake({ allowedOrigins: [origin], token })
    const asked = { origin, 'access-control-request-method': 'POST' }
    const preflight = await ask(`${url}/api/v1/cameras`, { method: 'OPTIONS', headers: asked })
    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-origin']).toBe(origin)
    expect(preflight.headers['access-control-allow-headers']).toContain('authorization')
    const reply = await ask(`${url}/api/v1/cameras`, { headers: { origin, ...bearer } })
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([200, origin])
    const foreign = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const refused = await ask(`${url}/api/v1/cameras`, { method: 'OPTIONS', headers: foreign })
    expect(refused.status).toBe(403)
    expect(refused.headers['access-control-allow-origin']).toBeUndefined()
  })
})

it.each(['/healthz', '/api/v1/cameras', '/none', '/'])('sends the security headers with %s', async (path) => {
  const { url } = await serveFake()
  const { headers } = await ask(`${url}${path}`)
  expect(headers['content-security-policy']).toBe(
    "default-src 'self'; img-src 'self' blob: data:; connect-src 'self'; style-src 'self'; script-src 'self'; " +
      "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  )
  expect(headers['x-content-type-options']).toBe('nosniff')
  expect(headers['referrer-policy']).toBe('no-referrer')
  expect(headers['access-control-allow-origin']).toBeUndefined()
})

describe('the limit of requests', () => {
  it('refuses an address that asks too often, whatever its token, and tells when to come back', async () => {
    const { url } = await serveFake({ maxRequestsPerMinute: 3, token })
    const guess = () => ask(`${url}/api/v1/cameras`, { headers: { authorization: 'Bearer guess' } })
    expect([(await guess()).status, (await guess()).status]).toEqual([401, 401])
    expect((await ask(`${url}/api/v1/cameras`, { headers: bearer })).status).toBe(200)
    const refused = await ask(`${url}/api/v1/cameras`, { headers: bearer })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(refused.json).toMatchObject({ code: 'GANTRY_RATE_LIMITED', status: 429 })
  })

  it('does not count probes and metrics', async () => {
    const { url } = await serveFake({ maxRequestsPerMinute: 1 })
    for (const path of ['/healthz', '/readyz', '/metrics', '/healthz', '/metrics'])
      expect((await ask(url + path)).status).not.toBe(429)
  })

  it('S43: does not count another node with the token of all, and is not got round by its header alone', async () => {
    const limit = { maxRequestsPerMinute: 3, token }
    const path = '/api/v1/cameras'
    const asNode = { 'gantry-scope': 'node' }
    const gantry = new FakeGantry()
    gantry.onThisNode = gantry
    const { url } = await serveFake(limit, { gantry })
    for (let asked = 0; asked < 10; asked += 1)
      expect((await ask(url + path, { headers: { ...bearer, ...asNode } })).status).toBe(200)
    const guess = { authorization: 'Bearer guess', ...asNode }
    expect((await ask(url + path, { headers: guess })).status).toBe(401)
    expect((await ask(url + path, { headers: asNode })).status).toBe(401)
    expect((await ask(url + path, { headers: bearer })).status).toBe(200)
    expect((await ask(url + path, { headers: bearer })).status).toBe(429)
    expect((await ask(url + path, { headers: asNode })).status).toBe(429)
    expect((await ask(url + path, { headers: { ...bearer, ...asNode } })).status).toBe(200)
    // A service that is no node has no others, and one without a token cannot tell them.
    const alone = [await serveFake(limit), await serveFake({ maxRequestsPerMinute: 3 }, { gantry })]
    for (const served of alone) {
      const statuses: number[] = []
      for (let asked = 0; asked < 4; asked += 1)
        statuses.push((await ask(served.url + path, { headers: { ...bearer, ...asNode } })).status)
      expect(statuses).toEqual([200, 200, 200, 429])
    }
  })

  it('S43: does not look at the token of a node where wrong ones came too often from its address', async () => {
    const gantry = new FakeGantry()
    gantry.onThisNode = gantry
    const { url } = await serveFake({ maxRequestsPerMinute: 3, token }, { gantry })
    const asNode = { 'gantry-scope': 'node' }
    for (let guess = 0; guess < 3; guess += 1)
      await ask(`${url}/readyz`, { headers: { authorization: `Bearer guess-${guess}`, ...asNode } })
    expect((await ask(`${url}/api/v1/cameras`, { headers: { ...bearer, ...asNode } })).status).toBe(429)
  })
})
