import { describe, expect, it } from 'vitest'
import { readinessSchema, statusSchema } from '../../../src/api/readiness-schemas.js'
import { problemSchema } from '../../../src/api/problem.js'
import { fakeGpu } from '../../support/fake-gantry.js'
import { ask } from '../../support/http.js'
import { serveFake } from '../../support/serve-fake.js'

describe('health and readiness', () => {
  it('is healthy and ready, with the engines as detail', async () => {
    const { url } = await serveFake()
    expect((await ask(`${url}/healthz`)).json).toEqual({ status: 'ok' })
    const reply = await ask(`${url}/readyz`)
    expect(reply.status).toBe(200)
    expect(readinessSchema.parse(reply.json).engines[0]?.detector?.labels).toContain('helmet')
  })

  it('is healthy and not ready, with the reasons, while engines are down', async () => {
    const { url, gantry } = await serveFake()
    gantry.reasons = ['engine 0 is restarting']
    expect((await ask(`${url}/healthz`)).status).toBe(200)
    const reply = await ask(`${url}/readyz`)
    expect(reply.status).toBe(503)
    expect(readinessSchema.parse(reply.json)).toMatchObject({
      ready: false,
      reasons: ['engine 0 is restarting'],
    })
  })

  it('stays ready while a broker is away', async () => {
    const { url, gantry } = await serveFake()
    const records = { queued: 3, delivered: 0, dropped: 2, filtered: 1, rejected: { MESSAGE_TOO_LARGE: 2 } }
    gantry.sinks = [{ name: 'kafka', state: 'down', reason: 'refused', ...records }]
    const reply = await ask(`${url}/readyz`)
    expect(reply.status).toBe(200)
    expect(readinessSchema.parse(reply.json).sinks).toMatchObject([
      { name: 'kafka', state: 'down', queued: 3 },
    ])
  })

  it('shows the whole state of the service', async () => {
    const { url, gantry } = await serveFake()
    const status = async () => statusSchema.parse((await ask(`${url}/api/v1/status`)).json)
    expect(await status()).toMatchObject({
      name: 'test',
      version: '0.0.0',
      ready: true,
      stream: { clients: 0 },
      gpus: [],
    })
    gantry.graphicsCards = [fakeGpu(), fakeGpu({ index: 1, utilization: null, reason: 'GPU is lost' })]
    expect((await status()).gpus).toEqual(gantry.graphicsCards)
  })
})

describe('metrics', () => {
  it('are served on both ports, and nothing else but health on the second', async () => {
    const { url, metricsUrl } = await serveFake()
    for (const base of [url, metricsUrl]) {
      const reply = await ask(`${base}/metrics`)
      expect(reply.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
      expect(reply.text).toContain('gantry_up 1')
    }
    expect((await ask(`${metricsUrl}/healthz`)).status).toBe(200)
    expect((await ask(`${metricsUrl}/api/v1/cameras`)).status).toBe(404)
  })
})

describe('paths and methods', () => {
  it('answers an unknown path with a problem', async () => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/api/v1/nothing`)
    expect(reply.status).toBe(404)
    expect(problemSchema.parse(reply.json).code).toBe('GANTRY_NOT_FOUND')
  })

  it.each([
    ['PUT', '/api/v1/cameras', 'GET, HEAD, POST'],
    ['DELETE', '/api/v1/cameras', 'GET, HEAD, POST'],
    ['POST', '/api/v1/cameras/a', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/metrics?x=1', 'GET, HEAD'],
    ['OPTIONS', '/healthz', 'GET, HEAD'],
  ])('answers %s %s with 405 and what is allowed', async (method, path, allow) => {
    const { url } = await serveFake()
    const reply = await ask(`${url}${path}`, { method })
    expect(reply.status).toBe(405)
    expect(reply.headers.allow).toBe(allow)
    expect(problemSchema.parse(reply.json).code).toBe('GANTRY_METHOD_NOT_ALLOWED')
  })

  it('answers a path that cannot be decoded with a problem and all security headers', async () => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/%zz`)
    expect(reply.status).toBe(400)
    expect(problemSchema.parse(reply.json).code).toBe('GANTRY_BAD_REQUEST')
    expect(reply.headers['content-security-policy']).toContain("default-src 'self'")
  })

  it('keeps the words of an internal error to the log', async () => {
    const lines: string[] = []
    const { url, gantry } = await serveFake({}, { log: (line) => lines.push(line) })
    gantry.failMetrics = new Error('the secret innards')
    const reply = await ask(`${url}/metrics`)
    expect(reply.status).toBe(500)
    expect(problemSchema.parse(reply.json).code).toBe('GANTRY_INTERNAL')
    expect(reply.text).not.toContain('innards')
    expect(lines.join('')).toContain('innards')
  })

  it('logs a request with its route and without its query', async () => {
    const lines: string[] = []
    const { url } = await serveFake({}, { log: (line) => lines.push(line) })
    await ask(`${url}/api/v1/cameras?token=canary-4711`)
    const logged = lines.find((line) => line.includes('/api/v1/cameras'))
    expect(logged).toContain('request answered')
    expect(lines.join('')).not.toContain('canary-4711')
  })
})
