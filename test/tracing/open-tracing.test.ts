import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { tracingSchema } from '../../src/config/tracing.js'
import type { TraceContext } from '../../src/messages/traceparent.js'
import { openTracing } from '../../src/tracing/open-tracing.js'
import type { Tracing } from '../../src/tracing/spans.js'
import { freePort } from '../support/free-port.js'
import { OtlpReceiver, outsideParents, shapeOf } from '../support/otlp-receiver.js'
import { recordingLog } from '../support/silent-log.js'
import { TestAuthority } from '../support/test-authority.js'
import { until } from '../support/until.js'

const who = { process: 'control', pipeline: 'plant', version: '1.2.3' } as const
const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true }
/** Undefined where it is not traced. */
const begun = (tracing: Tracing, parent?: TraceContext) =>
  tracing.picks(parent) ? tracing.begin(root({ parent })) : undefined
const root = (more: object = {}) => ({ name: 'root', kind: 'internal', startMs: 1_000.25, ...more }) as const

describe('spans', () => {
  const cleanUp: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function receiver(...args: Parameters<typeof OtlpReceiver.start>): Promise<OtlpReceiver> {
    const started = await OtlpReceiver.start(...args)
    cleanUp.push(() => started.stop())
    return started
  }

  async function opened(settings: object) {
    const { log, lines } = recordingLog()
    const tracing = await openTracing(tracingSchema.parse({ sampling: 1, ...settings }), who, log)
    if (tracing === undefined) throw new Error('tracing is off')
    cleanUp.push(() => tracing.stop(1_000))
    return { tracing, lines }
  }

  /** One trace of two spans. */
  function send(tracing: Tracing): void {
    const span = tracing.begin(root())
    span.add({ name: 'part', startMs: 1_000.5, endMs: 1_001, attributes: { n: 1 } })
    span.end({ endMs: 1_002, attributes: { 'gantry.camera.id': 'cam' } })
  }

  it('are off without an endpoint', async () => {
    expect(await openTracing(tracingSchema.parse({}), who, recordingLog().log)).toBeUndefined()
  })

  it.each(['http/protobuf', 'grpc'] as const)(
    'arrive by %s with their times, names and who sends them',
    async (protocol) => {
      const taking = await receiver()
      const endpoint = protocol === 'grpc' ? taking.grpcUrl : taking.url
      const headers = { authorization: 'Bearer abc' }
      const { tracing } = await opened({ endpoint, protocol, headers, serviceName: 'dock' })
      send(tracing)
      await tracing.flush(10_000)
      const [trace = []] = taking.traces()
      expect(shapeOf(trace)).toBe('root (part)')
      expect(outsideParents(trace)).toEqual([])
      expect(trace[0]).toMatchObject({
        startMs: 1_000.25,
        endMs: 1_002,
        attributes: { 'gantry.camera.id': 'cam' },
        resource: {
          'service.name': 'dock',
          'service.version': '1.2.3',
          'gantry.process': 'control',
          'gantry.pipeline': 'plant',
        },
      })
      expect(taking.headers[0]).toMatchObject(headers)
      if (protocol === 'http/protobuf') expect(taking.paths).toEqual(['POST /v1/traces'])
    },
  )

  it('go to the path of the endpoint where it has one', async () => {
    const taking = await receiver()
    const { tracing } = await opened({ endpoint: `${taking.url}/otlp/v1/traces?team=a` })
    send(tracing)
    await tracing.flush(10_000)
    expect(taking.paths).toEqual(['POST /otlp/v1/traces?team=a'])
  })

  it.each(['http/protobuf', 'grpc'] as const)(
    'S39: go by TLS with a certificate of ours over %s',
    async (protocol) => {
      const authority = new TestAuthority()
      cleanUp.push(() => Promise.resolve(authority.remove()))
      const [server, ours] = [authority.issue('server'), authority.issue('ours')]
      const read = (path: string) => readFileSync(path, 'utf8')
      const ca = read(authority.ca)
      const taking = await receiver({ cert: read(server.cert), key: read(server.key), ca })
      const endpoint = protocol === 'grpc' ? taking.grpcUrl : taking.url
      const { tracing } = await opened({ endpoint, protocol, tls: { ca: authority.ca, ...ours } })
      send(tracing)
      await tracing.flush(10_000)
      expect(taking.spans).toHaveLength(2)
      const distrusting = await opened({ endpoint, protocol, timeoutMs: 1_000 })
      send(distrusting.tracing)
      await distrusting.tracing.flush(10_000)
      expect(taking.spans).toHaveLength(2)
      expect(JSON.stringify(distrusting.lines)).toContain('tracing.tls.ca')
    },
  )

  it('are taken of one frame in many, or of none, and a parent decides where there is one', async () => {
    const taking = await receiver()
    const count = async (settings: object, parent?: TraceContext) => {
      const { tracing } = await opened({ endpoint: taking.url, ...settings })
      return Array.from({ length: 4_000 }, () => begun(tracing, parent)).filter(Boolean).length
    }
    expect(await count({ sampling: 0 })).toBe(0)
    expect(await count({ sampling: 1 })).toBe(4_000)
    const some = await count({ sampling: 0.1 })
    expect(some).toBeGreaterThan(250)
    expect(some).toBeLessThan(550)
    expect(await count({ sampling: 0 }, remote)).toBe(4_000)
    expect(await count({ sampling: 1 }, { ...remote, isSampled: false })).toBe(0)
  })

  it('S38: of clients that are not trusted begin traces of their own, sampled like any other, with a link', async () => {
    const taking = await receiver()
    const none = await opened({ endpoint: taking.url, sampling: 0, followParent: false })
    expect(begun(none.tracing, remote)).toBeUndefined()
    const { tracing } = await opened({ endpoint: taking.url, followParent: false })
    begun(tracing, { ...remote, isSampled: false })?.end({ endMs: 1_001 })
    await tracing.flush(10_000)
    const [span] = taking.spans
    expect(span).toMatchObject({
      parentSpanId: '',
      links: [{ traceId: remote.traceId, spanId: remote.spanId }],
    })
    expect(span?.traceId).not.toBe(remote.traceId)
  })

  it('go on with the trace of a parent, with its state', async () => {
    const taking = await receiver()
    const { tracing } = await opened({ endpoint: taking.url, sampling: 0 })
    const span = begun(tracing, { ...remote, state: 'a=1,b=2' })
    span?.add({ name: 'part', startMs: 1_000.5, endMs: 1_001 })
    span?.end({ endMs: 1_001 })
    tracing.addTo(remote, { name: 'late', startMs: 5, endMs: 6, error: 'rejected' })
    await tracing.flush(10_000)
    expect(taking.spans).toMatchObject([
      { name: 'part', traceId: remote.traceId, parentSpanId: span?.context.spanId, traceState: 'a=1,b=2' },
      { name: 'root', traceId: remote.traceId, parentSpanId: remote.spanId, traceState: 'a=1,b=2' },
      { name: 'late', traceId: remote.traceId, parentSpanId: remote.spanId, startMs: 5, error: 'rejected' },
    ])
  })

  it('R154: that nobody takes are lost, told once, and told again when they arrive', async () => {
    const port = await freePort()
    const { tracing, lines } = await opened({ endpoint: `http://127.0.0.1:${port}`, timeoutMs: 200 })
    const told = (message: string) => lines.filter((line) => line.msg === message)
    for (let round = 0; round < 3; round += 1) {
      send(tracing)
      await tracing.flush(10_000)
    }
    expect(told('spans do not arrive, they are lost')).toMatchObject([
      {
        level: 40,
        reason: expect.stringContaining('ECONNREFUSED') as string,
        fix: expect.stringContaining('tracing.endpoint') as string,
      },
    ])
    const taking = await receiver(undefined, port)
    await until('a span', async () => {
      send(tracing)
      await tracing.flush(10_000)
      return taking.spans.length > 0
    })
    expect(told('spans arrive again')).toMatchObject([{ lost: 6 }])
    expect(told('spans do not arrive, they are lost')).toHaveLength(1)
  })

  it('R155: that are answered with an error are told with it', async () => {
    const taking = await receiver()
    taking.status = 404
    const { tracing, lines } = await opened({ endpoint: `${taking.url}/elsewhere`, timeoutMs: 500 })
    send(tracing)
    await tracing.flush(10_000)
    expect(JSON.stringify(lines)).toContain('404')
  })

  it('R156: have a bound, also where what takes them hangs, and hold up neither who makes them nor the end', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).resume())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanUp.push(async () => server.close())
    const { port } = server.address() as { port: number }
    const { tracing, lines } = await opened({ endpoint: `http://127.0.0.1:${port}`, timeoutMs: 60_000 })
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heldBytes = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = heldBytes()
    for (let index = 0; index < 20_000; index += 1) send(tracing)
    // 40,000 spans of some 2 KB would be 80 MB.
    expect(heldBytes() - before).toBeLessThan(20 * 1024 ** 2)
    expect(lines.filter(({ msg }) => /more come than can be sent/.test(String(msg)))).toHaveLength(1)
    const beganMs = performance.now()
    await tracing.stop(300)
    expect(performance.now() - beganMs).toBeLessThan(5_000)
  })

  it('S38: texts of clients are cut', async () => {
    const taking = await receiver()
    const { tracing } = await opened({ endpoint: taking.url })
    const long = 'x'.repeat(100_000)
    const span = tracing.begin(root())
    span.add({ name: 'part', startMs: 1_000.5, endMs: 1_001, attributes: { id: long }, error: long })
    span.end({ endMs: 1_001, attributes: { id: long } })
    await tracing.flush(10_000)
    const cut = 'x'.repeat(1_024)
    expect(taking.spans).toMatchObject([
      { name: 'part', attributes: { id: cut }, error: cut },
      { name: 'root', attributes: { id: cut } },
    ])
  })
})
