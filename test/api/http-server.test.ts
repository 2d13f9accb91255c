import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { gunzipSync } from 'node:zlib'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pino } from 'pino'
import { serverSchema } from '../../src/config/server.js'
import { EngineUnavailableError } from '../../src/cameras/engine-errors.js'
import { createHttpServer } from '../../src/api/http-server.js'
import { FakeGantry } from '../support/fake-gantry.js'
import { freePort } from '../support/free-port.js'
import { ask } from '../support/http.js'
import { exchange } from '../support/raw-http.js'
import { serveFake } from '../support/serve-fake.js'

function serverWith(settings: Record<string, unknown>) {
  const server = createHttpServer({
    gantry: new FakeGantry(),
    settings: serverSchema.parse({ httpPort: 0, metricsPort: 0, ...settings }),
    log: pino({ level: 'silent' }),
  })
  onTestFinished(() => server.stop(100))
  return server
}

async function tryToServe(settings: Record<string, unknown>): Promise<unknown> {
  const server = serverWith(settings)
  return server.start(new AbortController().signal).then(
    () => server.state,
    (error: unknown) => error,
  )
}

async function takenPort(): Promise<number> {
  const squatter = createServer().listen(0, '127.0.0.1')
  await once(squatter, 'listening')
  onTestFinished(() => void squatter.close())
  const address = squatter.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

describe('start', () => {
  it('S5: refuses an address that others can reach while no token is set', async () => {
    expect(await tryToServe({ host: '0.0.0.0' })).toMatchObject({ code: 'GANTRY_PUBLIC_BIND' })
    expect(await tryToServe({ host: '::' })).toMatchObject({ code: 'GANTRY_PUBLIC_BIND' })
    expect(await tryToServe({ host: '0.0.0.0', insecure: true })).toBe('running')
    expect(await tryToServe({ host: '0.0.0.0', token: 'sixteen-characters' })).toBe('running')
  })

  it.each(['httpPort', 'metricsPort'])('names the address and the fix when %s is in use', async (setting) => {
    const port = await takenPort()
    const error = await tryToServe({ [setting]: port })
    expect(error).toMatchObject({
      code: 'GANTRY_PORT_IN_USE',
      message: `127.0.0.1:${port} is already in use`,
    })
    expect((error as { hint: string }).hint).toContain(`server.${setting}`)
  })

  it('tells an address that a browser of this machine opens', async () => {
    const server = serverWith({ host: '0.0.0.0', insecure: true })
    await server.start(new AbortController().signal)
    expect(server.address?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect((await ask(`${server.address?.url}healthz`)).status).toBe(200)
  })

  it('opens one listener when the metrics are to stay on the port of HTTP', async () => {
    const port = await freePort()
    expect(await tryToServe({ httpPort: port, metricsPort: port })).toBe('running')
    expect((await ask(`http://127.0.0.1:${port}/metrics`)).status).toBe(200)
  })

  it('says so when the address is not of this machine', async () => {
    expect(await tryToServe({ host: '192.0.2.1', token: 'sixteen-characters' })).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
    })
  })
})

describe('stop', () => {
  it('R20: answers readiness with 503 at once, lets requests finish and takes nothing new', async () => {
    const { server, gantry, url } = await serveFake()
    let open = (): void => undefined
    gantry.metricsGate = new Promise((resolve) => (open = resolve))
    const slow = ask(`${url}/metrics`)
    // The handler has asked for the metrics once this answers: one loop serves both in order.
    await ask(`${url}/healthz`)
    server.refuse()
    const ready = await ask(`${url}/readyz`)
    expect([ready.status, (ready.json as { reasons: string[] }).reasons]).toEqual([
      503,
      ['the service is stopping'],
    ])
    const body = { id: 'a', url: 'rtsp://h/' }
    expect((await ask(`${url}/api/v1/cameras`, { method: 'POST', body })).status).toBe(503)
    const stopped = server.stop(5_000)
    open()
    expect((await slow).text).toContain('gantry_up')
    await stopped
    expect(server.state).toBe('stopped')
    await expect(ask(`${url}/healthz`)).rejects.toThrow()
  })

  it('cuts what does not finish within its budget, and may be called twice', async () => {
    const { server, gantry, url } = await serveFake()
    gantry.metricsGate = new Promise(() => undefined)
    const hanging = ask(`${url}/metrics`)
    const cut = expect(hanging).rejects.toThrow()
    await ask(`${url}/healthz`)
    const startedMs = performance.now()
    await Promise.all([server.stop(200), server.stop(200)])
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    await cut
  })
})

describe('a request that cannot be read', () => {
  it.each([
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'GANTRY_BAD_REQUEST'],
    ['no HTTP', '\u0016\u0003\u0001\u0000\r\n\r\n', 400, 'GANTRY_BAD_REQUEST'],
    [
      'headers past the limit',
      `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'GANTRY_TOO_LARGE',
    ],
  ])('is answered with a problem: %s', async (_, bytes, status, code) => {
    const { server } = await serveFake()
    const answer = await exchange({ host: '127.0.0.1', port: server.address?.httpPort ?? 0 }, [bytes])
    expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ status, code, type: `urn:gantry:problem:${code}` })
  })
})

describe('the log', () => {
  it('has an error for faults of the service, and none for what a caller can wait for', async () => {
    const lines: string[] = []
    const gantry = new FakeGantry()
    const { url } = await serveFake({}, { gantry, log: (line) => lines.push(line) })
    const errors = () => lines.filter((line) => line.includes('request failed'))
    gantry.failMetrics = new EngineUnavailableError('restarting')
    expect((await ask(`${url}/metrics`)).status).toBe(503)
    expect(errors()).toEqual([])
    gantry.failMetrics = new Error('broken')
    expect((await ask(`${url}/metrics`)).status).toBe(500)
    expect(errors()).toHaveLength(1)
  })
})

describe('the page', () => {
  async function webRoot(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'gantry-web-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await mkdir(join(folder, 'web', 'assets'), { recursive: true })
    await writeFile(
      join(folder, 'web', 'index.html'),
      `<!doctype html><title>page</title>${'<p>text</p>'.repeat(100)}`,
    )
    await writeFile(join(folder, 'web', 'assets', 'main-abc123.js'), 'export {}')
    await writeFile(join(folder, 'web', '.secret'), 'hidden')
    await writeFile(join(folder, 'outside.html'), 'outside')
    await symlink(join(folder, 'outside.html'), join(folder, 'web', 'link.html'))
    return join(folder, 'web')
  }

  it('is served without the token, its hashed files cached for ever', async () => {
    const { url } = await serveFake({ token: 'sixteen-characters' }, { webRoot: await webRoot() })
    const page = await ask(`${url}/`)
    expect([page.status, page.headers['cache-control']]).toEqual([200, 'no-cache'])
    expect(page.headers['content-type']).toContain('text/html')
    const script = await ask(`${url}/assets/main-abc123.js`)
    expect([script.status, script.headers['cache-control']]).toEqual([
      200,
      'public, max-age=31536000, immutable',
    ])
  })

  it('is sent compressed, and once only to a browser that kept it', async () => {
    const { url } = await serveFake({}, { webRoot: await webRoot() })
    const packed = await ask(`${url}/`, { headers: { 'accept-encoding': 'gzip, br' } })
    expect(packed.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(packed.bytes).toString()).toContain('<title>page</title>')
    const etag = packed.headers.etag ?? ''
    const kept = await ask(`${url}/`, { headers: { 'if-none-match': etag } })
    expect([kept.status, kept.text]).toEqual([304, ''])
  })

  it('stays whole when a build replaces its files', async () => {
    const root = await webRoot()
    const { url } = await serveFake({}, { webRoot: root })
    await writeFile(join(root, 'index.html'), 'another')
    await rm(join(root, 'assets'), { recursive: true })
    expect((await ask(`${url}/`)).text).toContain('<title>page</title>')
    expect((await ask(`${url}/assets/main-abc123.js`)).status).toBe(200)
  })

  it.each([
    '/../outside.html',
    '/assets/../../outside.html',
    '/%2e%2e/outside.html',
    '/..%2foutside.html',
    '/.secret',
    '/link.html',
    '/assets/',
  ])('hides %s', async (path) => {
    const { url } = await serveFake({}, { webRoot: await webRoot() })
    const reply = await ask(`${url}${path}`)
    expect(reply.status).toBeGreaterThanOrEqual(400)
    expect(reply.text).not.toMatch(/outside$|hidden/)
  })

  it('says how to build it when it is not built', async () => {
    const { url } = await serveFake({}, { webRoot: '/nonexistent' })
    const reply = await ask(`${url}/`)
    expect(reply.status).toBe(503)
    expect(reply.text).toContain('npm run build')
  })
})
