import { execFileSync } from 'node:child_process'
import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { Agent } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { tinyRepository, type TinyRepository } from '../bench/tiny-model.js'
import { GrpcClient } from '../support/grpc-client.js'
import { type ServiceOptions, TestService } from '../support/service.js'
import { TestAuthority } from '../support/test-authority.js'
import { type ClientTls, fetchByTls } from '../support/tls-client.js'
import { until } from '../support/until.js'

/** Each starts a service, and files are looked at twice before what is wrong with them is told. */
vi.setConfig({ testTimeout: 120_000 })

let authority: TestAuthority
let repository: TinyRepository
let trust: ClientTls

beforeAll(() => {
  authority = new TestAuthority()
  repository = tinyRepository()
  trust = { ca: authority.text(authority.ca) }
})

afterAll(() => {
  authority.remove()
  rmSync(repository.dir, { recursive: true, force: true })
})

/** What a client of the CA of the test shows. */
function shown(name: string, by = authority): ClientTls {
  const { cert, key } = by.issue(name)
  return { ...trust, cert: by.text(cert), key: by.text(key) }
}

function options(
  tls: NonNullable<ServiceOptions['server']>['tls'],
  more: Readonly<{ trust?: ClientTls; server?: object; log?: object }> = {},
): ServiceOptions {
  return {
    server: { ...(tls && { tls }), ...more.server },
    trust: more.trust ?? trust,
    pipeline: {
      engines: 0,
      models: { repository: repository.dir, control: 'explicit', load: ['tiny'] },
      modelServer: { enabled: true },
      ...(more.log && { log: { format: 'json', ...more.log } }),
    },
  }
}

const inferBody = JSON.stringify({
  inputs: [{ name: 'x0', datatype: 'FP32', shape: [256], data: Array.from({ length: 256 }, (_, at) => at) }],
})
const grpcInfer = {
  model_name: 'tiny',
  inputs: [
    { name: 'x0', datatype: 'FP32', shape: [256], contents: { fp32_contents: Array<number>(256).fill(2) } },
  ],
}

async function grpcPort(service: TestService): Promise<number> {
  return until('gRPC', async () => (await service.ready()).modelServer?.grpcPort ?? undefined)
}

async function modelReady(service: TestService): Promise<void> {
  await until('the model', async () => (await service.fetch('/v2/models/tiny/ready')).ok, 60_000)
}

/** The serial number of what a server shows. */
async function serialAt(port: number, ca: string, more: ConnectionOptions = {}): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, ca, ...more })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

/** All that a server says to so many bytes. */
async function said(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (data: string) => (text += data))
  socket.on('error', () => undefined)
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

describe('a service with server.tls', () => {
  let service: TestService

  beforeAll(async () => {
    service = await TestService.start(options(authority.issue('service')))
    await modelReady(service)
  }, 120_000)

  afterAll(async () => service[Symbol.asyncDispose]())

  it('serves page, API and metrics on both ports', async () => {
    const page = await service.fetch('/')
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<html')
    expect(await service.json('/api/v1/cameras')).toMatchObject({ items: [] })
    const metrics = await fetchByTls(`https://127.0.0.1:${service.metricsPort}/metrics`, trust)
    expect(metrics.status).toBe(200)
    const text = await metrics.text()
    expect(text).toContain('gantry_tls_door_up 1')
    const [, expiry] =
      /^gantry_tls_certificate_expiry_timestamp_seconds\{file="cert"\} (\d+)$/m.exec(text) ?? []
    expect(Number(expiry)).toBeGreaterThan(Date.now() / 1_000)
  })

  it('serves models by HTTP and gRPC, and requests for others on the connection of a model client', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const by = { ...trust, agent }
    const headers = { 'content-type': 'application/json' }
    const url = `${service.url}/v2/models/tiny/infer`
    const answer = await fetchByTls(url, by, { method: 'POST', headers, body: inferBody })
    expect(await answer.json()).toMatchObject({ outputs: [{ name: 'y', shape: [256] }] })
    expect((await fetchByTls(`${service.url}/readyz`, by)).status).toBe(200)
    const client = new GrpcClient(await grpcPort(service), {}, trust)
    onTestFinished(() => client.close())
    expect(await client.call('ModelInfer', grpcInfer)).toMatchObject({ model_name: 'tiny' })
  })

  it('serves viewers by wss', async () => {
    const stream = await service.stream()
    onTestFinished(() => stream.close())
    expect(stream.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed'])
  })

  it('S25: speaks TLS 1.2 and 1.3, and nothing older', async () => {
    const spoken = async (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3', port: number) => {
      const socket = connectTls({
        ...{ host: '127.0.0.1', port, ca: trust.ca, minVersion: version, maxVersion: version },
        // OpenSSL of today would not even offer the old one.
        ciphers: 'DEFAULT@SECLEVEL=0',
      })
      onTestFinished(() => void socket.destroy())
      return new Promise((resolve) => {
        socket.once('secureConnect', () => resolve(socket.getProtocol()))
        socket.once('error', () => resolve('refused'))
      })
    }
    for (const port of [service.httpPort, service.metricsPort, await grpcPort(service)]) {
      expect(await spoken('TLSv1.1', port)).toBe('refused')
      expect(await spoken('TLSv1.2', port)).toBe('TLSv1.2')
      expect(await spoken('TLSv1.3', port)).toBe('TLSv1.3')
    }
  })

  it('agrees on HTTP/1.1 with clients that would rather have HTTP/2', async () => {
    const socket = connectTls({
      ...{ host: '127.0.0.1', port: service.httpPort, ca: trust.ca, ALPNProtocols: ['h2', 'http/1.1'] },
    })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    expect(socket.alpnProtocol).toBe('http/1.1')
  })

  it('S25: tells a client that speaks plain HTTP what the port speaks', async () => {
    for (const port of [service.httpPort, service.metricsPort]) {
      const answer = await said(port, 'GET /v2/health/live HTTP/1.1\r\nHost: gantry.example.com:8000\r\n\r\n')
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
      expect(answer).toContain('this port speaks TLS')
      expect(answer).toContain('https://gantry.example.com:8000/')
    }
    expect(await said(service.httpPort, 'SSH-2.0-OpenSSH_9.2\r\n')).toBe('')
    const plain = async () => service.metric(/gantry_tls_refused_connections_total\{cause="plain"\}/)
    await until('the count', async () => (await plain()) >= 3)
  })

  it('answers a client that is done with asking', async () => {
    const socket = connectTls({ host: '127.0.0.1', port: service.httpPort, ca: trust.ca })
    onTestFinished(() => void socket.destroy())
    let text = ''
    socket.setEncoding('utf8').on('data', (data: string) => (text += data))
    socket.end('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'close')
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
  })
})

it('R83: ends TLS in a process that is started again on the same ports', async () => {
  await using service = await TestService.start(options(authority.issue('service')))
  const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(service.pid)], {
    encoding: 'utf8',
  })
  const [, pid] = /^ *(\d+) .*tls-door/m.exec(children) ?? []
  process.kill(Number(pid), 'SIGKILL')
  await until('the restart', async () => {
    try {
      return (await service.metric(/gantry_tls_door_restarts_total/)) === 1
    } catch {
      return false
    }
  })
  expect((await service.fetch('/readyz')).status).toBe(200)
})

it('S27: counts requests by the address of the client, whatever it says, also of model clients whose request comes back', async () => {
  await using service = await TestService.start(
    options(authority.issue('service'), { server: { maxRequestsPerMinute: 20 } }),
  )
  const from = async (localAddress: string) => {
    const agent = new Agent({ keepAlive: true, localAddress })
    onTestFinished(() => agent.destroy())
    const statuses = new Set<number>()
    // The connection begins with `/v2`, so the model server has it.
    await fetchByTls(`${service.url}/v2`, { ...trust, agent })
    for (let asked = 0; asked < 25; asked++)
      statuses.add(
        (
          await fetchByTls(
            `${service.url}/api/v1/cameras`,
            { ...trust, agent },
            { headers: { 'x-forwarded-for': `192.0.2.${asked}` } },
          )
        ).status,
      )
    return [...statuses]
  }
  expect(await from('127.0.0.2')).toEqual([200, 429])
  expect(await from('127.0.0.3')).toEqual([200, 429])
})

it('S24: lets nobody in who has no certificate of clientCa', async () => {
  const other = new TestAuthority('another')
  onTestFinished(() => other.remove())
  const mine = shown('press-shop')
  const files = { ...authority.issue('service'), clientCa: authority.ca }
  await using service = await TestService.start(options(files, { trust: mine, log: { level: 'debug' } }))
  await modelReady(service)
  const port = await grpcPort(service)
  const strangers: ClientTls[] = [trust, { ...shown('press-shop', other) }]
  for (const stranger of strangers) {
    for (const url of [service.url, `https://127.0.0.1:${service.metricsPort}`])
      await expect(fetchByTls(`${url}/healthz`, stranger)).rejects.toThrow()
    const client = new GrpcClient(port, {}, stranger)
    onTestFinished(() => client.close())
    await expect(client.call('ServerLive', {}, { deadlineMs: 5_000 })).rejects.toMatchObject({ code: 14 })
  }
  const client = new GrpcClient(port, {}, mine)
  onTestFinished(() => client.close())
  expect(await client.call('ModelInfer', grpcInfer)).toMatchObject({ model_name: 'tiny' })
  const stream = await service.stream()
  onTestFinished(() => stream.close())
  expect((await service.fetch('/api/v1/cameras')).status).toBe(200)
  const page = await until('the counts', async () => {
    const text = await service.metrics()
    return /cause="untrusted"\} [1-9]/.test(text) ? text : undefined
  })
  expect(page).toMatch(/cause="no_certificate"\} [1-9]/)
  // Who asked stands in the log.
  await until('the line', () => service.stderr.includes('"client":"CN=press-shop"'))
})

describe('files that change', () => {
  /** A pair in a folder, as an operator would put it there. */
  function placed(pair: Readonly<{ cert: string; key: string }>, dir: string) {
    const into = (from: string, name: string) => {
      copyFileSync(from, join(dir, `${name}.new`))
      renameSync(join(dir, `${name}.new`), join(dir, name))
    }
    into(pair.cert, 'tls.crt')
    into(pair.key, 'tls.key')
    return { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') }
  }

  it('R84: are read again under load, without a lost request', async () => {
    const dir = authority.folder
    const files = placed(authority.issue('first'), dir)
    await using service = await TestService.start(options(files))
    await modelReady(service)
    const port = await grpcPort(service)
    const before = await serialAt(service.httpPort, trust.ca)
    let asked = 0
    const failures: unknown[] = []
    const agent = new Agent({ keepAlive: true })
    const grpc = new GrpcClient(port, {}, trust)
    onTestFinished(() => {
      agent.destroy()
      grpc.close()
    })
    const ending = new AbortController()
    const ask = async (once: () => Promise<boolean>) => {
      while (!ending.signal.aborted) {
        asked += 1
        try {
          if (!(await once())) failures.push('status')
        } catch (error) {
          failures.push(error)
        }
      }
    }
    const headers = { 'content-type': 'application/json' }
    const infer = { method: 'POST', headers, body: inferBody }
    const load = [
      ask(async () => (await fetchByTls(`${service.url}/readyz`, trust)).ok),
      ask(async () => (await fetchByTls(`${service.url}/readyz`, { ...trust, agent })).ok),
      ask(async () => (await fetchByTls(`${service.url}/v2/models/tiny/infer`, trust, infer)).ok),
      ask(async () => (await grpc.call('ModelInfer', grpcInfer)).model_name === 'tiny'),
    ]
    await until('some load', () => asked > 50)
    placed(authority.issue('second'), dir)
    const changed = async (at: number) => (await serialAt(at, trust.ca)) !== before
    for (const at of [service.httpPort, service.metricsPort, port])
      await until('the new certificate', () => changed(at), 30_000)
    const askedThen = asked
    await until('more load', () => asked > askedThen + 50)
    ending.abort()
    await Promise.all(load)
    expect(failures).toEqual([])
    expect(service.stderr).toContain('changed TLS files are in use')
  })

  it('R88: are read again on SIGHUP, which ends nothing', async () => {
    const dir = authority.folder
    const files = placed(authority.issue('first'), dir)
    await using service = await TestService.start(options(files))
    const before = await serialAt(service.httpPort, trust.ca)
    placed(authority.issue('second'), dir)
    service.kill('SIGHUP')
    service.kill('SIGHUP')
    await until('the line', () => service.stderr.includes('the TLS files are read again, as asked'))
    const changed = async () => (await serialAt(service.httpPort, trust.ca)) !== before
    await until('the new certificate', changed, 30_000)
    service.kill('SIGTERM')
    expect(await service.exited()).toBe(0)
  })

  it('R85: that do not match change nothing, and the log says so', async () => {
    const dir = authority.folder
    const files = placed(authority.issue('good'), dir)
    await using service = await TestService.start(options(files))
    const before = await serialAt(service.httpPort, trust.ca)
    copyFileSync(authority.issue('bad').key, files.key)
    await until('the line', () => service.stderr.includes('changed TLS files cannot be used'), 30_000)
    expect(service.stderr).toMatch(
      /"setting":"server\.tls\.key","reason":"[^"]+ is not the key of the certificate/,
    )
    expect(await serialAt(service.httpPort, trust.ca)).toBe(before)
    writeFileSync(files.cert, 'half a cert')
    expect(await serialAt(service.httpPort, trust.ca)).toBe(before)
    placed(authority.issue('better'), dir)
    await until(
      'the new certificate',
      async () => (await serialAt(service.httpPort, trust.ca)) !== before,
      30_000,
    )
  })
})

it('R86: serves with a certificate that has expired, and says so', async () => {
  const blind = { ...trust, rejectUnauthorized: false } as const
  await using service = await TestService.start(
    options(authority.issue('old', { expired: true }), { trust: blind }),
  )
  expect(service.stderr).toContain('expired at 2020-02-01T00:00:00Z')
})
