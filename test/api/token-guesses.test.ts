import { describe, expect, it } from 'vitest'
import { exchange } from '../support/raw-http.js'
import { serveFake, type Served } from '../support/serve-fake.js'

const token = 'canary-token-0123456789'
const perMinute = 3

/** A token at a target, as somebody tries it who writes requests himself. */
async function tried(
  served: Served,
  target: string,
  given: string,
  more = '',
  port?: number,
): Promise<number> {
  const { status } = await exchange(
    { host: '127.0.0.1', port: port ?? served.server.address?.httpPort ?? 0 },
    [
      `GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${given}\r\nconnection: ${more === '' ? 'close' : 'upgrade'}\r\n${more}\r\n`,
    ],
  )
  return status
}

const offer =
  'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: gantry.v1\r\n'

describe('wrong tokens of an address', () => {
  it.each([
    ['an escaped path', '/%61pi/v1/cameras', ''],
    ['a path that is escaped as a whole', '/%61%70%69/%76%31/cameras', ''],
    ['a target with scheme and name', 'http://127.0.0.1/api/v1/cameras', ''],
    ['the same, escaped', 'http://127.0.0.1/%61pi/v1/cameras?x=1', ''],
    ['readiness, whose details need it', '/readyz', ''],
    ['metrics', '/metrics', ''],
    ['the model server', '/v2', ''],
    ['a model', '/v2/models/a', ''],
    ['the page', '/', ''],
    ['a path that is not there', '/none', ''],
    ['the stream', '/api/v1/stream', offer],
  ])('S21: are counted at %s, until the right one is not looked at either', async (_, target, more) => {
    const served = await serveFake({ maxRequestsPerMinute: perMinute, token })
    for (let guess = 0; guess < perMinute; guess += 1)
      expect(await tried(served, target, 'guess', more)).not.toBe(429)
    expect(await tried(served, target, token, more)).toBe(429)
  })

  it('S21: are counted together on every port and path', async () => {
    const served = await serveFake({ maxRequestsPerMinute: perMinute, token })
    const { metricsPort = 0 } = served.server.address ?? {}
    await tried(served, '/metrics', 'guess', '', metricsPort)
    await tried(served, '/readyz', 'guess')
    await tried(served, '/api/v1/stream', 'guess', offer)
    expect(await tried(served, '/metrics', token, '', metricsPort)).toBe(429)
  })

  it('S21: do not count where the token is right, or there is none', async () => {
    const served = await serveFake({ maxRequestsPerMinute: perMinute, token })
    for (let probe = 0; probe < 3 * perMinute; probe += 1) {
      expect(await tried(served, '/metrics', token)).toBe(200)
      expect((await fetch(`${served.url}/readyz`)).status).not.toBe(429)
    }
  })
})

describe('an escaped path', () => {
  it('is what it is routed to, and keeps the escapes that mean something', async () => {
    const served = await serveFake({ token })
    expect(await tried(served, '/%61pi/v1/cameras', token)).toBe(200)
    expect(await tried(served, '/api%2Fv1/cameras', token)).toBe(404)
    expect(await tried(served, '/api/v1/cameras/%zz', token)).toBe(400)
  })
})
