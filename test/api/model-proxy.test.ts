import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serverSchema } from '../../src/config/server.js'
import { createHttpServer } from '../../src/api/http-server.js'
import { FakeGantry } from '../support/fake-gantry.js'
import { ask } from '../support/http.js'
import { silentLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

type Upstream = { socketPath: string; ready: boolean; wake?: () => Promise<void> | undefined }

/** A server whose `/v2` is answered by `listener` behind a unix socket. */
async function proxied(listener: RequestListener, settings: Record<string, unknown> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-proxy-'))
  const socketPath = join(dir, 'http.sock')
  const behind = createServer(listener).listen(socketPath)
  await once(behind, 'listening')
  const upstream: Upstream = { socketPath, ready: true }
  const server = createHttpServer({
    gantry: new FakeGantry(),
    settings: serverSchema.parse({ httpPort: 0, metricsPort: 0, ...settings }),
    log: silentLog(),
    models: { upstream, maxRequestBytes: 1024 ** 2 },
  })
  onTestFinished(async () => {
    await server.stop(100)
    behind.closeAllConnections()
    behind.close()
    rmSync(dir, { recursive: true, force: true })
  })
  await server.start(new AbortController().signal)
  return { url: `http://127.0.0.1:${server.address?.httpPort}`, upstream, behind }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

describe('/v2 of the service', () => {
  it('hands over method, path, query, body and headers, but those of the connection and the token', async () => {
    const seen: unknown[] = []
    const { url } = await proxied(
      (request, response) =>
        void bodyOf(request).then((body) => {
          seen.push([request.method, request.url, body, request.headers])
          response
            .writeHead(201, { 'inference-header-content-length': '7', 'content-type': 'x/y' })
            .end('answer')
        }),
    )
    const reply = await ask(`${url}/v2/models/a%20b/infer?x=1`, {
      method: 'POST',
      body: 'hello',
      headers: {
        'inference-header-content-length': '5',
        'content-type': 'application/octet-stream',
        authorization: 'Bearer secret',
        connection: 'close, x-mine',
        'x-mine': '1',
      },
    })
    expect(reply).toMatchObject({ status: 201, text: 'answer' })
    expect(reply.headers).toMatchObject({ 'inference-header-content-length': '7', 'content-type': 'x/y' })
    expect(seen).toMatchObject([
      ['POST', '/v2/models/a%20b/infer?x=1', 'hello', { 'content-type': 'application/octet-stream' }],
    ])
    const [[, , , headers]] = seen as [[string, string, string, Record<string, string>]]
    for (const name of ['authorization', 'x-mine']) expect(headers).not.toHaveProperty(name)
  })

  it('passes a body on while it still comes', async () => {
    let first: string | undefined
    const { url } = await proxied((request, response) => {
      request.once('data', (chunk: Buffer) => (first = chunk.toString()))
      request.once('end', () => response.end('done'))
      request.resume()
    })
    const sent = httpRequest(`${url}/v2/models/a/infer`, { method: 'POST' })
    const answered = once(sent, 'response')
    sent.write('first')
    await until('the first piece', () => first === 'first')
    sent.end('last')
    const [response] = (await answered) as [IncomingMessage]
    expect(await bodyOf(response)).toBe('done')
  })

  it('says in the form of its clients that the model server is away, and when a request died with it', async () => {
    const { url, upstream } = await proxied((request) => request.socket.destroy())
    const died = await ask(`${url}/v2/models/a/infer`, { method: 'POST', body: 'x' })
    expect([died.status, died.json]).toEqual([503, { error: expect.any(String) as string }])
    upstream.ready = false
    const away = await ask(`${url}/v2/health/live`)
    expect([away.status, away.json]).toEqual([503, { error: 'the model server is not running' }])
  })

  it('waits for a model server that its first requests start, and says when it does not come', async () => {
    const { url, upstream } = await proxied((request, response) => void request.pipe(response))
    let woken = 0
    const end: Record<'ready' | 'failed', () => void> = { ready: () => undefined, failed: () => undefined }
    upstream.ready = false
    upstream.wake = () => {
      woken += 1
      return new Promise((resolve) => {
        end.ready = () => resolve(void (upstream.ready = true))
        end.failed = resolve
      })
    }
    const first = ask(`${url}/v2/models/a/infer`, { method: 'POST', body: 'x' })
    await until('the first', () => woken === 1)
    end.failed()
    expect(await first).toMatchObject({ status: 503, json: { error: 'the model server is not running' } })
    const second = ask(`${url}/v2/models/a/infer`, { method: 'POST', body: 'hello' })
    await until('the second', () => woken === 2)
    end.ready()
    expect(await second).toMatchObject({ status: 200, text: 'hello' })
    expect(woken).toBe(2)
  })

  it('S5, S7: asks for the token, and refuses other sites and bodies that are too large', async () => {
    const { url } = await proxied((_, response) => void response.end('in'), { token: 'sixteen-characters' })
    const refused = await ask(`${url}/v2`)
    expect([refused.status, refused.json]).toEqual([
      401,
      { error: expect.stringContaining('Authorization: Bearer') as string },
    ])
    const headers = { authorization: 'Bearer sixteen-characters' }
    expect((await ask(`${url}/v2`, { headers })).text).toBe('in')
    const foreign = await ask(`${url}/v2`, { headers: { ...headers, origin: 'http://evil.example' } })
    expect(foreign.status).toBe(403)
    const large = await ask(`${url}/v2/models/a/infer`, {
      method: 'POST',
      headers,
      body: Buffer.alloc(1024 ** 2 + 1),
    })
    expect([large.status, large.json]).toEqual([413, { error: expect.stringMatching(/maximum/) as string }])
  })

  it('lets clients with the token ask by any name, and tells others what allows it', async () => {
    const host = 'triton.default.svc.cluster.local:8000'
    const behind: RequestListener = (_, response) => void response.end('in')
    const known = await proxied(behind, { token: 'sixteen-characters' })
    const headers = { host, authorization: 'Bearer sixteen-characters' }
    expect((await ask(`${known.url}/v2/models/x`, { headers })).text).toBe('in')
    expect((await ask(`${known.url}/v2/models/x`, { headers: { host } })).status).toBe(401)
    const { url } = await proxied(behind)
    const refused = await ask(`${url}/v2/models/x`, { headers })
    expect([refused.status, refused.json]).toEqual([
      403,
      { error: expect.stringMatching(/not a name of this service.*server\.allowedHosts/) as string },
    ])
    const allowing = await proxied(behind, { allowedHosts: ['*.svc.cluster.local'] })
    expect((await ask(`${allowing.url}/v2/models/x`, { headers: { host } })).text).toBe('in')
  })

  it.each(['live', 'ready'])('tells anyone whether it is %s, and no more', async (what) => {
    const { url, upstream } = await proxied((_, response) => void response.writeHead(400).end(), {
      token: 'sixteen-characters',
    })
    const at = `${url}/v2/health/${what}`
    const given = [{}, { host: 'lb.example' }, { origin: 'http://evil.example' }]
    for (const headers of given) expect(await ask(at, { headers })).toMatchObject({ status: 400, text: '' })
    upstream.ready = false
    for (const headers of given) {
      const away = await ask(at, { headers })
      expect([away.status, away.text, away.headers['access-control-allow-origin']]).toEqual([
        503,
        '',
        undefined,
      ])
    }
    const headers = { authorization: 'Bearer sixteen-characters' }
    expect((await ask(at, { headers })).text).toContain('not running')
    expect((await ask(at, { method: 'POST' })).status).toBe(401)
    expect((await ask(`${url}/v2/models/a/ready`)).status).toBe(401)
  })

  it('keeps the body of a GET or DELETE a body, whatever its framing and whatever Connection names', async () => {
    const seen: unknown[] = []
    const { url } = await proxied(
      (request, response) =>
        void bodyOf(request).then((body) => {
          seen.push([request.method, request.url, body])
          response.end('answer')
        }),
    )
    const body = 'GET /v2/models/other HTTP/1.1\r\nhost: a\r\n\r\n'
    const length = { 'content-length': String(body.length), connection: 'keep-alive, content-length' }
    for (const method of ['GET', 'DELETE'])
      for (const headers of [{ 'transfer-encoding': 'chunked' }, length])
        expect(await ask(`${url}/v2`, { method, headers, body })).toMatchObject({ status: 200 })
    expect(seen).toEqual(['GET', 'GET', 'DELETE', 'DELETE'].map((method) => [method, '/v2', body]))
  })

  it('refuses a body that is too large and does not tell its length', async () => {
    const { url } = await proxied((request) => void request.resume())
    const sent = httpRequest(`${url}/v2/models/a/infer`, { method: 'POST' })
    sent.on('error', () => undefined)
    const answered = once(sent, 'response')
    for (let piece = 0; piece < 17; piece++) sent.write(Buffer.alloc(65_536))
    const [response] = (await answered) as [IncomingMessage]
    expect([response.statusCode, await bodyOf(response)]).toEqual([413, expect.stringMatching(/maximum/)])
  })

  it('lets go of a request whose client is gone', async () => {
    let gone = false
    let came = false
    const { url } = await proxied((request) => {
      came = true
      request.once('close', () => (gone = true))
    })
    const sent = httpRequest(`${url}/v2/models/a/infer`)
    sent.on('error', () => undefined)
    sent.end()
    await until('the request', () => came)
    sent.destroy()
    await until('its end', () => gone)
  })
})
