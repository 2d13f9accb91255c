import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type NetConnectOpts } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serverSchema } from '../../src/config/server.js'
import { createHttpServer } from '../../src/api/http-server.js'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import { mostJsonParts } from '../../src/api/kserve/json-scanner.js'
import { requestLimits } from '../../src/serving/request-limits.js'
import { FakeGantry } from '../support/fake-gantry.js'
import { FakeModelServer } from '../support/fake-model-server.js'
import { exchange, type Pieces } from '../support/raw-http.js'
import { silentLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

const maxBodyBytes = 200_000
/** Of the slow senders in these tests; a minute otherwise. */
const patienceMs = 400
type Door = 'the routes' | 'the service before them'

/** The routes on their unix socket, as control reaches them, and the service on its port, as clients reach them. */
async function opened(timeouts: { routes?: number; service?: number } = {}, maxBytes = maxBodyBytes) {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-limits-'))
  const socketPath = join(dir, 'http.sock')
  const server = new FakeModelServer({
    plain: { datatype: 'FP32', shape: [-1, 4] },
    strings: { datatype: 'BYTES', shape: [-1, 1] },
  })
  const app = createKserveApp(server, {
    maxBodyBytes: maxBytes,
    log: silentLog(),
    ...(timeouts.routes === undefined ? {} : { requestTimeoutMs: timeouts.routes }),
  })
  await app.listen({ path: socketPath })
  const service = createHttpServer({
    gantry: new FakeGantry(),
    settings: serverSchema.parse({ httpPort: 0, metricsPort: 0 }),
    log: silentLog(),
    models: { upstream: { socketPath, ready: true }, maxRequestBytes: maxBytes },
    ...(timeouts.service === undefined ? {} : { requestTimeoutMs: timeouts.service }),
  })
  await service.start(new AbortController().signal)
  onTestFinished(async () => {
    await service.stop(100)
    app.server.closeAllConnections()
    await app.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const port = service.address?.httpPort ?? 0
  const at: Record<Door, NetConnectOpts> = {
    'the routes': { path: socketPath },
    'the service before them': { host: '127.0.0.1', port },
  }
  return { server, at, through: (door: Door, pieces: Pieces) => exchange(at[door], pieces) }
}

const path = '/v2/models/plain/infer'

function head(headers: Readonly<Record<string, string | number>>, target = path): string {
  const lines = Object.entries({ host: '127.0.0.1', connection: 'close', ...headers })
  return `POST ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

function* singleBytes(text: string | Buffer): Generator<Buffer> {
  const bytes = Buffer.from(text as string)
  for (let at = 0; at < bytes.byteLength; at++) yield bytes.subarray(at, at + 1)
}

/** Each byte a chunk of its own, many to a write. */
function* singleByteChunks(body: Buffer, chunksInWrite = 4_096): Generator<Buffer> {
  for (let at = 0; at < body.byteLength; at += chunksInWrite) {
    const bytes = [...body.subarray(at, at + chunksInWrite)]
    yield Buffer.from(bytes.map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join(''), 'latin1')
  }
  yield Buffer.from('0\r\n\r\n')
}

function sized(body: string | Buffer, headers: Readonly<Record<string, string | number>> = {}): Pieces {
  const bytes = Buffer.from(body as string)
  return [head({ 'content-length': bytes.byteLength, ...headers }), bytes]
}

const input = { name: 'IN', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }
const good = JSON.stringify({ inputs: [input] })
const tooLarge = { error: `request body exceeds the maximum allowed size of ${maxBodyBytes} bytes` }

const doors: readonly Door[] = ['the routes', 'the service before them']

describe.each(doors)('a request to %s', (door) => {
  it('may come in single bytes, headers too', async () => {
    const { through } = await opened()
    const answer = await through(door, [
      ...singleBytes(head({ 'content-length': good.length })),
      ...singleBytes(good),
    ])
    expect(answer).toMatchObject({ status: 200, json: { outputs: [{ data: [1, 2, 3, 4] }] } })
  })

  it('may come in chunks of one byte, with a binary tensor', async () => {
    const { through, server } = await opened()
    const json = JSON.stringify({
      inputs: [{ ...input, data: undefined, parameters: { binary_data_size: 16 } }],
    })
    const body = Buffer.concat([Buffer.from(json), Buffer.from(new Float32Array([1, 2, 3, 4]).buffer)])
    const start = head({
      'transfer-encoding': 'chunked',
      'inference-header-content-length': json.length,
      'content-type': 'application/octet-stream',
    })
    expect(await through(door, [start, ...singleByteChunks(body, 1)])).toMatchObject({ status: 200 })
    expect(server.requests[0]?.inputs[0]?.data.byteLength).toBe(16)
  })

  it('is refused when its chunks of one byte are more than a body may have, and keeps none of them', async () => {
    const { through, server } = await opened()
    const before = process.memoryUsage().arrayBuffers
    const answer = await through(door, [
      head({ 'transfer-encoding': 'chunked' }),
      ...singleByteChunks(Buffer.alloc(maxBodyBytes + 1, 32)),
    ])
    expect([answer.status, answer.json]).toEqual([413, tooLarge])
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30 * maxBodyBytes)
    expect(server.requests).toEqual([])
  })

  it.each([
    ['a length past the limit', sized(Buffer.alloc(maxBodyBytes + 1)), 413, tooLarge],
    ['a length that is negative', [head({ 'content-length': -1 })], 400, expect.anything()],
    [
      'a length past every number',
      [head({ 'content-length': '99999999999999999999' })],
      400,
      expect.anything(),
    ],
    [
      'a length and chunks, which two readers would read in two ways',
      [head({ 'content-length': 5, 'transfer-encoding': 'chunked' }), '0\r\n\r\n'],
      400,
      expect.anything(),
    ],
    ['a chunk that is none', [head({ 'transfer-encoding': 'chunked' }), 'zz\r\n'], 400, expect.anything()],
    [
      'a header past the limit',
      [head({ 'content-length': 0, 'x-large': 'x'.repeat(20_000) })],
      431,
      expect.anything(),
    ],
    [
      'more headers than fit',
      [head({ ...Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`x-${at}`, '1'])) })],
      431,
      expect.anything(),
    ],
  ])('is refused with %s', async (_, pieces, status, json) => {
    const { through, server } = await opened()
    const answer = await through(door, pieces)
    expect(answer.status).toBe(status)
    if (status === 413) expect(answer.json).toEqual(json)
    expect(server.requests).toEqual([])
  })

  it('is refused when it unpacks to more than a body may have', async () => {
    const { through } = await opened()
    const answer = await through(
      door,
      sized(gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' }),
    )
    expect([answer.status, answer.json]).toEqual([413, tooLarge])
  })

  const dims = 'attempt to access JSON non-unsigned-integer as unsigned-integer'
  it.each([
    ['a negative size', '[-1,4]', 400, `Unable to parse 'shape': ${dims}`],
    ['the least 64-bit number', '[-9223372036854775808]', 400, `Unable to parse 'shape': ${dims}`],
    ['2^53', '[9007199254740992]', 400, `Unable to parse 'shape': ${dims}`],
    ['2^64', '[18446744073709551616]', 400, `Unable to parse 'shape': ${dims}`],
    ['1e400', '[1e400]', 400, `Unable to parse 'shape': ${dims}`],
    ['a part', '[0.5,4]', 400, `Unable to parse 'shape': ${dims}`],
    ['text', '["4"]', 400, `Unable to parse 'shape': ${dims}`],
    [
      'a product that overflows',
      '[4294967296,4294967296]',
      400,
      "invalid shape for input 'IN': shape [4294967296,4294967296] causes total element count to exceed maximum size of 9007199254740991",
    ],
    [
      'bytes that overflow',
      '[4503599627370496]',
      400,
      "byte size overflow for input 'IN': element count (4503599627370496) * data type size (4) exceeds maximum allowed size (9007199254740991)",
    ],
    [
      'more sizes than a shape may have',
      `[${Array(requestLimits.dims + 1)
        .fill(1)
        .join(',')}]`,
      400,
      `request has more than ${requestLimits.dims} dimensions in a shape`,
    ],
    [
      'other bytes than it says',
      '[2,4]',
      400,
      "[request id: <id_unknown>] input byte size mismatch for input 'IN' for model 'plain'. Expected 32, got 16",
    ],
  ])('is refused with a shape of %s', async (_, shape, status, error) => {
    const { through, server } = await opened()
    const tensor = `{"name":"IN","datatype":"FP32","shape":${shape},"parameters":{"binary_data_size":16}}`
    const json = `{"inputs":[${tensor}]}`
    const body = Buffer.concat([Buffer.from(json), Buffer.alloc(16)])
    const answer = await through(door, sized(body, { 'inference-header-content-length': json.length }))
    expect([answer.status, answer.json]).toEqual([status, { error }])
    expect(server.requests).toEqual([])
  })

  it('reserves nothing for a shape whose data is not there', async () => {
    const { through } = await opened()
    const json = JSON.stringify({ inputs: [{ ...input, shape: [2 ** 40], data: [1] }] })
    const answer = await through(door, sized(json))
    expect([answer.status, answer.json]).toEqual([
      500,
      { error: "Unable to parse 'data': Shape does not match true shape of 'data' field" },
    ])
  })
})

describe.each(doors)('a sender that is slow, to %s', (door) => {
  const timeouts = door === 'the routes' ? { routes: patienceMs } : { service: patienceMs }

  it.each([
    ['stops in its headers', head({ 'content-length': 100 }).slice(0, 40)],
    ['stops in its body', head({ 'content-length': 100 }) + '{"inputs"'],
    ['stops in a chunk', head({ 'transfer-encoding': 'chunked' }) + '5\r\n{"i'],
    ['says that a body comes and sends none', head({ 'content-length': 100 })],
  ])('is told 408 when it %s', async (_, sent) => {
    const { through, server } = await opened(timeouts)
    expect((await through(door, [sent])).status).toBe(408)
    expect(server.requests).toEqual([])
  })

  it('is cut off when it trickles for longer than a request may take', async () => {
    const { through, server } = await opened(timeouts)
    const answer = await through(
      door,
      (async function* () {
        yield head({ 'content-length': 100_000 })
        for (;;) {
          yield ' '
          await pause(20)
        }
      })(),
    )
    // Who goes on writing may be reset before it has read the answer.
    expect([408, 0]).toContain(answer.status)
    expect(server.requests).toEqual([])
  })

  it('costs the others nothing, however many there are', async () => {
    const { through, at, server } = await opened({}, 64_000_000)
    const rssBefore = process.memoryUsage.rss()
    const stalled = Array.from({ length: 200 }, () => {
      const socket = connect(at[door])
      socket.on('error', () => undefined)
      socket.write(head({ 'content-length': 60_000_000 }) + '{')
      return socket
    })
    onTestFinished(() => stalled.forEach((socket) => socket.destroy()))
    await until('all to be connected', () => stalled.every((socket) => socket.bytesWritten > 0))
    expect(await through(door, sized(good))).toMatchObject({ status: 200 })
    expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(300_000_000)
    expect(server.requests).toHaveLength(1)
  })
})

it('passes on that the routes gave up on a sender, and is asked the next thing as before', async () => {
  const { through } = await opened({ routes: patienceMs })
  const door = 'the service before them'
  expect((await through(door, [head({ 'content-length': 100 }) + '{'])).status).toBe(408)
  expect((await through(door, sized(good))).status).toBe(200)
})

describe('JSON that is small and would be large in memory', () => {
  const limit = 64_000_000

  it.each([
    ['inputs', { inputs: Array(requestLimits.inputs + 1).fill(input) }, 'request has more than 4096 inputs'],
    [
      'outputs',
      { inputs: [input], outputs: Array(requestLimits.outputs + 1).fill({ name: 'OUT' }) },
      'request has more than 4096 outputs',
    ],
    [
      'parameters',
      {
        inputs: [input],
        parameters: Object.fromEntries(
          Array.from({ length: requestLimits.parameters + 1 }, (_, at) => [`p${at}`, 1]),
        ),
      },
      'request has more than 1024 parameters in one place',
    ],
  ])('is refused with too many %s', async (_, request, error) => {
    const { through } = await opened({}, limit)
    const answer = await through('the routes', sized(JSON.stringify(request)))
    expect([answer.status, answer.json]).toEqual([400, { error }])
  })

  it.each([
    ['arrays', '[],'],
    ['objects', '{},'],
  ])('is refused before it is parsed, with 20 million %s', async (_, piece) => {
    const { through } = await opened({}, limit)
    const before = process.memoryUsage().heapUsed
    const body = `{"inputs":[${piece.repeat(20_000_000)}1]}`
    const answer = await through('the routes', sized(body))
    expect([answer.status, answer.json]).toEqual([
      400,
      { error: `request JSON has more than ${mostJsonParts} objects, arrays and members` },
    ])
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(200_000_000)
  })

  it('keeps no object for each text of a tensor', async () => {
    const { through, server } = await opened({}, limit)
    const count = 1_000_000
    const json = `{"inputs":[{"name":"IN","datatype":"BYTES","shape":[${count},1],"data":["${'","'.repeat(count - 1)}"]}],"outputs":[{"name":"OUT","parameters":{"binary_data":true}}]}`
    const answer = await through('the routes', [
      head({ 'content-length': json.length }, '/v2/models/strings/infer'),
      json,
    ])
    expect(answer.status).toBe(200)
    expect(server.requests[0]?.inputs[0]?.data.byteLength).toBe(4 * count)
  })
})
