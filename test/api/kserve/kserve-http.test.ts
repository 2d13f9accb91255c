import type { FastifyInstance } from 'fastify'
import { deflateSync, gunzipSync, gzipSync, inflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKserveApp } from '../../../src/api/kserve/kserve-app.js'
import { InternalError } from '../../../src/errors.js'
import { ServingError } from '../../../src/tensors/serving-error.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { recordingLog } from '../../support/silent-log.js'

const float32 = { datatype: 'FP32', shape: [-1, 4] } as const
const models = {
  plain: float32,
  longs: { datatype: 'INT64', shape: [2] },
  strings: { datatype: 'BYTES', shape: [-1, 1] },
  halves: { datatype: 'FP16', shape: [2] },
  open: { datatype: 'FP32', shape: [-1, -1] },
} as const

let server: FakeModelServer
let app: FastifyInstance
let lines: Record<string, unknown>[]

beforeEach(() => {
  server = new FakeModelServer(models)
  const recording = recordingLog()
  lines = recording.lines
  app = createKserveApp(server, { maxBodyBytes: 1_000_000, log: recording.log })
})
afterEach(() => app.close())

type Sent = Readonly<{ status: number; headers: Record<string, unknown>; body: Buffer; json: () => unknown }>

async function send(
  method: 'GET' | 'POST' | 'HEAD' | 'PUT' | 'DELETE',
  url: string,
  payload?: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Sent> {
  const answer = await app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) })
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: answer.rawPayload,
    json: () => answer.json<unknown>(),
  }
}

const values = Buffer.from(new Float32Array([1, 2.5, -3, 4]).buffer)
const input = { name: 'IN', datatype: 'FP32', shape: [1, 4] }

function binary(json: unknown, ...blobs: readonly Buffer[]): [Buffer, Record<string, string>] {
  const header = Buffer.from(JSON.stringify(json))
  return [
    Buffer.concat([header, ...blobs]),
    {
      'inference-header-content-length': String(header.byteLength),
      'content-type': 'application/octet-stream',
    },
  ]
}

function infer(json: unknown, model = 'plain'): Promise<Sent> {
  return send('POST', `/v2/models/${model}/infer`, JSON.stringify(json), {
    'content-type': 'application/json',
  })
}

describe('health and metadata', () => {
  it('answers live and ready with an empty body, 400 when it is not ready', async () => {
    expect(await send('GET', '/v2/health/live')).toMatchObject({ status: 200, body: Buffer.alloc(0) })
    expect(await send('GET', '/v2/health/ready')).toMatchObject({ status: 200 })
    server.isReady = false
    expect(await send('GET', '/v2/health/ready')).toMatchObject({ status: 400, body: Buffer.alloc(0) })
  })

  it('tells 400 for a version of a model that is not ready', async () => {
    expect((await send('GET', '/v2/models/plain/ready')).status).toBe(200)
    expect((await send('GET', '/v2/models/plain/versions/1/ready')).status).toBe(200)
    const answer = await send('GET', '/v2/models/plain/versions/7/ready')
    expect([answer.status, answer.json()]).toEqual([400, { error: 'Model version not ready' }])
  })

  it('describes server and models', async () => {
    expect((await send('GET', '/v2')).json()).toEqual({
      name: 'gantry',
      version: '0.0.0',
      extensions: server.extensions,
    })
    expect((await send('GET', '/v2/models/plain/versions/1')).json()).toEqual({
      name: 'plain',
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 4] }],
      outputs: [{ name: 'OUT', datatype: 'FP32', shape: [-1, 4] }],
    })
  })

  it('prints every primitive field of a configuration, even when it is the default', async () => {
    const config = (await send('GET', '/v2/models/plain/config')).json()
    expect(config).toMatchObject({
      name: 'plain',
      backend: '',
      max_batch_size: 8,
      input: [{ name: 'IN', data_type: 'TYPE_FP32', format: 'FORMAT_NONE', dims: [4], optional: false }],
      instance_group: [],
      parameters: {},
      cc_model_filenames: {},
    })
    expect(config).not.toHaveProperty('dynamic_batching')
    expect(config).not.toHaveProperty('response_cache')
  })

  it('gives all eight durations of the statistics', async () => {
    const { model_stats } = (await send('GET', '/v2/models/plain/stats')).json() as { model_stats: unknown[] }
    expect(model_stats[0]).toMatchObject({
      name: 'plain',
      version: '1',
      inference_count: 0,
      inference_stats: Object.fromEntries(
        [
          'success',
          'fail',
          'queue',
          'compute_input',
          'compute_infer',
          'compute_output',
          'cache_hit',
          'cache_miss',
        ].map((name) => [name, { count: 0, ns: 0 }]),
      ),
    })
    expect((await send('GET', '/v2/models/stats')).json()).toHaveProperty(
      ['model_stats', '4', 'name'],
      'open',
    )
  })
})

describe('errors', () => {
  it.each([
    ['an unknown path', 'GET', '/v2/nothing', 404, 'Not Found'],
    ['a version that is no number', 'GET', '/v2/models/plain/versions/abc', 404, 'Not Found'],
    ['a wrong method', 'POST', '/v2/models/plain', 405, 'Method Not Allowed'],
    ['another wrong method', 'GET', '/v2/models/plain/infer', 405, 'Method Not Allowed'],
    ['a name never known', 'GET', '/v2/models/x', 400, "Request for unknown model: 'x' is not found"],
    [
      'a version not there',
      'GET',
      '/v2/models/plain/versions/9',
      503,
      "Request for unknown model: 'plain' version 9 is not found",
    ],
    [
      'shared memory',
      'GET',
      '/v2/systemsharedmemory/status',
      501,
      'shared memory is not supported by this server: modelServer.sharedMemory is off',
    ],
    [
      'a repository by name',
      'POST',
      '/v2/repository/mine/models/plain/load',
      501,
      "'repository_name' specification is not supported",
    ],
  ] as const)('tells of %s', async (_, method, url, status, error) => {
    const answer = await send(method, url)
    expect([answer.status, answer.json()]).toEqual([status, { error }])
  })

  it.each([
    ['INTERNAL', 500],
    ['NOT_FOUND', 404],
    ['UNAVAILABLE', 503],
    ['UNSUPPORTED', 501],
    ['INVALID_ARG', 400],
    ['ALREADY_EXISTS', 400],
    ['CANCELLED', 400],
    ['UNKNOWN', 400],
  ] as const)('answers %s with %d', async (status, code) => {
    server.onInfer = () => Promise.reject(new ServingError(status, 'so it is'))
    const answer = await infer({ inputs: [{ ...input, data: [1, 2, 3, 4] }] })
    expect([answer.status, answer.json()]).toEqual([code, { error: 'so it is' }])
  })

  it.each([new Error('secret'), new InternalError('secret')])(
    'keeps the words of %o to the log',
    async (fault) => {
      server.onInfer = () => Promise.reject(fault)
      const answer = await infer({ inputs: [{ ...input, data: [1, 2, 3, 4] }] })
      expect([answer.status, answer.json()]).toEqual([500, { error: 'internal error' }])
      expect(lines).toMatchObject([
        { err: { message: 'secret', stack: expect.stringContaining('secret') as string } },
      ])
    },
  )
})

describe('inference', () => {
  it('takes and gives JSON', async () => {
    const answer = await infer({ id: 'a', inputs: [{ ...input, data: [[1, 2.5, -3, 4]] }] })
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.json()).toEqual({
      id: 'a',
      model_name: 'plain',
      model_version: '1',
      outputs: [{ name: 'OUT', datatype: 'FP32', shape: [1, 4], data: [1, 2.5, -3, 4] }],
    })
  })

  it('takes binary inputs and gives binary outputs', async () => {
    const json = {
      parameters: { binary_data_output: true },
      inputs: [{ ...input, parameters: { binary_data_size: 16 } }],
    }
    const answer = await send('POST', '/v2/models/plain/infer', ...binary(json, values))
    expect(answer.headers['content-type']).toBe('application/octet-stream')
    const length = Number(answer.headers['inference-header-content-length'])
    expect(JSON.parse(answer.body.subarray(0, length).toString())).toMatchObject({
      outputs: [{ name: 'OUT', shape: [1, 4], parameters: { binary_data_size: 16 } }],
    })
    expect(answer.body.subarray(length)).toEqual(values)
  })

  it('lets an output ask for its own form', async () => {
    const outputs = [{ name: 'OUT', parameters: { binary_data: true } }]
    const answer = await infer({ inputs: [{ ...input, data: [1, 2, 3, 4] }], outputs })
    expect(answer.headers).toHaveProperty('inference-header-content-length')
    const asked = { ...input, data: [1, 2, 3, 4] }
    const json = await infer({
      parameters: { binary_data_output: true },
      inputs: [asked],
      outputs: [{ name: 'OUT' }],
    })
    expect(json.headers).not.toHaveProperty('inference-header-content-length')
  })

  it('takes a raw body as the only input, batch 1, and answers in binary', async () => {
    const headers = { 'inference-header-content-length': '0', 'content-type': 'application/octet-stream' }
    const answer = await send('POST', '/v2/models/plain/infer', values, headers)
    expect(server.requests[0]?.inputs[0]).toMatchObject({ name: 'IN', datatype: 'FP32', shape: [1, 4] })
    expect(answer.body.subarray(-16)).toEqual(values)
    await send('POST', '/v2/models/open/infer', values, headers)
    expect(server.requests[1]?.inputs[0]?.shape).toEqual([1, 4])
    await send('POST', '/v2/models/strings/infer', Buffer.from('abc'), headers)
    expect(Buffer.from(server.requests[2]?.inputs[0]?.data ?? [])).toEqual(Buffer.from('\x03\0\0\0abc'))
  })

  it('keeps 64-bit integers exact', async () => {
    const data = ['9223372036854775807', '-9223372036854775808']
    const body = `{"inputs":[{"name":"IN","datatype":"INT64","shape":[2],"data":[${data.join(',')}]}]}`
    const answer = await send('POST', '/v2/models/longs/infer', body)
    expect(answer.body.toString()).toContain(`"data":[${data.join(',')}]`)
  })

  it('carries text and bytes', async () => {
    const strings = { name: 'IN', datatype: 'BYTES', shape: [2, 1], data: ['Zaun', 'Tor ü'] }
    expect((await infer({ inputs: [strings] }, 'strings')).json()).toHaveProperty(
      'outputs.0.data',
      strings.data,
    )
  })

  it('gives classes in place of values', async () => {
    const outputs = [{ name: 'OUT', parameters: { classification: 2 } }]
    const answer = await infer({ inputs: [{ ...input, data: [1, 2.5, -3, 4] }], outputs })
    expect(answer.json()).toHaveProperty('outputs.0', {
      name: 'OUT',
      datatype: 'BYTES',
      shape: [1, 2],
      data: ['4.000000:3', '2.500000:1:dog'],
    })
  })

  it('reads parameters: those of schedule and sequence, and those of nobody', async () => {
    await infer({
      parameters: { priority: 2, timeout: 500, sequence_id: 7, sequence_start: true, mine: 'x', limit: 1.5 },
      inputs: [{ ...input, data: [1, 2, 3, 4] }],
    })
    expect(server.requests[0]).toMatchObject({
      priority: 2,
      timeoutUs: 500,
      sequence: { id: '7', start: true, end: false },
      parameters: { mine: 'x', limit: 1.5 },
    })
  })

  it.each([
    [
      'JSON',
      { ...input, data: [1, 2, 3] },
      500,
      "Unable to parse 'data': Shape does not match true shape of 'data' field",
    ],
    ['no data', input, 400, /Input must set only one of .* But no field is set/],
    [
      'both kinds of data',
      { ...input, data: [1], parameters: { binary_data_size: 4 } },
      400,
      /But set 'data' 'binary_data_size'/,
    ],
    [
      'a datatype that is none',
      { ...input, datatype: 'FP31', data: [] },
      400,
      'invalid datatype for input IN',
    ],
    ['a negative size', { ...input, shape: [-1, 4], data: [] }, 400, /Unable to parse 'shape'/],
    ['a size that is not whole', { ...input, shape: [1.5, 4], data: [] }, 400, /Unable to parse 'shape'/],
    [
      'a product past what is safe',
      { ...input, shape: [2 ** 40, 2 ** 40], data: [] },
      400,
      /causes total element count to exceed/,
    ],
    ['a huge shape', { ...input, shape: [2 ** 50], data: [1] }, 500, /Shape does not match/],
    ['text among numbers', { ...input, data: [1, 2, 3, 'x'] }, 400, /Unable to parse 'data'/],
    [
      'shared memory',
      { ...input, parameters: { shared_memory_region: 'r' } },
      501,
      /shared memory is not supported/,
    ],
    ['no name', { ...input, name: undefined, data: [] }, 400, /Unable to parse 'name'/],
  ] as const)('refuses an input with %s', async (_, tensor, status, error) => {
    const answer = await infer({ inputs: [tensor] })
    expect(answer.json()).toEqual({ error: expect.stringMatching(error) as string })
    expect(answer.status).toBe(status)
  })

  it('refuses half floats in JSON, both ways', async () => {
    const half = { name: 'IN', datatype: 'FP16', shape: [2] }
    expect((await infer({ inputs: [{ ...half, data: [1, 2] }] }, 'halves')).json()).toEqual({
      error: 'receiving FP16 data via JSON is not supported. Please use the binary data format for input IN',
    })
    const json = { inputs: [{ ...half, parameters: { binary_data_size: 4 } }] }
    const answer = await send('POST', '/v2/models/halves/infer', ...binary(json, Buffer.alloc(4)))
    expect(answer.json()).toEqual({
      error: 'sending FP16 data via JSON is not supported. Please use the binary data format for output',
    })
  })

  it.each([
    [
      'too few bytes',
      [16],
      values.subarray(0, 12),
      /^unexpected size for input 'IN', expecting 4 additional bytes for model 'plain'$/,
    ],
    ['too many bytes', [16], Buffer.alloc(20), /^unexpected additional input data for model 'plain'$/],
    [
      'a size other than the shape',
      [12],
      values.subarray(0, 12),
      /^\[request id: <id_unknown>\] input byte size mismatch for input 'IN' for model 'plain'. Expected 16, got 12$/,
    ],
    ['a size that is no number', ['16'], values, /Unable to parse 'binary_data_size'/],
  ] as const)('refuses binary data with %s', async (_, [size], blob, error) => {
    const json = { inputs: [{ ...input, parameters: { binary_data_size: size } }] }
    const answer = await send('POST', '/v2/models/plain/infer', ...binary(json, blob))
    expect([answer.status, answer.json()]).toEqual([400, { error: expect.stringMatching(error) as string }])
  })

  it.each([
    ['-1', 'inference header size should be in range (0, 2), got: -1'],
    ['3', 'inference header size should be in range (0, 2), got: 3'],
    ['x', 'Unable to parse Inference-Header-Content-Length, got: x'],
    [
      '99999999999',
      'Unable to parse Inference-Header-Content-Length, value is out of range [ -2147483648, 2147483647 ], got: 99999999999',
    ],
  ])('refuses a header length of %s', async (length, error) => {
    const answer = await send('POST', '/v2/models/plain/infer', '{}', {
      'inference-header-content-length': length,
    })
    expect([answer.status, answer.json()]).toEqual([400, { error }])
  })

  it('refuses JSON that is none, and data nested too deep', async () => {
    const broken = await send('POST', '/v2/models/plain/infer', '{"inputs": [')
    expect([broken.status, broken.json()]).toEqual([
      400,
      { error: expect.stringMatching(/^failed to parse the request JSON/) as string },
    ])
    const deep = `{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,4],"data":${'['.repeat(5000)}${']'.repeat(5000)}}]}`
    expect((await send('POST', '/v2/models/plain/infer', deep)).json()).toEqual({
      error: 'JSON nesting depth exceeds maximum allowed limit (100)',
    })
  })
})

describe('compression', () => {
  const body = Buffer.from(JSON.stringify({ inputs: [{ ...input, data: [1, 2, 3, 4] }] }))

  it.each([
    ['gzip', gzipSync, gunzipSync],
    ['deflate', deflateSync, inflateSync],
  ] as const)('takes and gives %s', async (encoding, pack, unpack) => {
    const answer = await send('POST', '/v2/models/plain/infer', pack(body), {
      'content-encoding': encoding,
      'accept-encoding': encoding,
    })
    expect(answer.headers['content-encoding']).toBe(encoding)
    expect(JSON.parse(unpack(answer.body).toString())).toHaveProperty('outputs.0.data', [1, 2, 3, 4])
  })

  it('does not unpack more than it would take', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    const answer = await send('POST', '/v2/models/plain/infer', bomb, { 'content-encoding': 'gzip' })
    expect(answer.status).toBe(413)
  })

  it('refuses damaged data and other encodings', async () => {
    const damaged = await send('POST', '/v2/models/plain/infer', body, { 'content-encoding': 'gzip' })
    expect(damaged.status).toBe(400)
    const other = await send('POST', '/v2/models/plain/infer', body, { 'content-encoding': 'br' })
    expect([other.status, other.json()]).toEqual([501, { error: 'Unsupported compression type' }])
  })
})

describe('repository', () => {
  it('lists models for an empty body too, as a JSON array', async () => {
    const all = await send('POST', '/v2/repository/index', '')
    expect(all.json()).toHaveLength(6)
    expect(all.json()).toContainEqual({ name: 'never-loaded' })
    const ready = await send('POST', '/v2/repository/index', '{"ready":true}')
    expect(ready.json()).toHaveLength(5)
    expect((await send('POST', '/v2/repository/index', '{"ready":1}')).status).toBe(400)
  })

  it('takes base64 in lines, and refuses what is none in linear time', async () => {
    const load = (content: string) =>
      send(
        'POST',
        '/v2/repository/models/plain/load',
        JSON.stringify({ parameters: { config: '{}', 'file:1/model.onnx': content } }),
      )
    expect((await load('b25u\neA==\n')).status).toBe(200)
    expect((await load(`${' '.repeat(60_000)}!`)).status).toBe(400)
    server.loads.length = 0
  })

  it('loads with a configuration and files, and unloads with dependents', async () => {
    const parameters = {
      config: '{"max_batch_size":2}',
      'file:1/model.onnx': Buffer.from('onnx').toString('base64'),
    }
    expect(
      (await send('POST', '/v2/repository/models/plain/load', JSON.stringify({ parameters }))).status,
    ).toBe(200)
    expect(server.loads[0]?.request.config).toBe(parameters.config)
    expect(Buffer.from(server.loads[0]?.request.files.get('1/model.onnx') ?? []).toString()).toBe('onnx')
    expect((await send('POST', '/v2/repository/models/plain/load')).status).toBe(200)
    await send('POST', '/v2/repository/models/plain/unload', '{"parameters":{"unload_dependents":true}}')
    expect(server.unloads).toEqual([{ name: 'plain', dependents: true }])
  })
})

describe('settings', () => {
  it('knows no setting by the names that every object has', async () => {
    const answers = [
      await send('POST', '/v2/logging', '{"toString":true}'),
      await send('POST', '/v2/trace/setting', '{"constructor":"1"}'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400])
  })

  it('tells that a model is unknown before what is wrong with its request', async () => {
    const short = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,4],"data":[1]}]}'
    for (const body of ['{', short]) {
      const answer = await send('POST', '/v2/models/nobody/infer', body)
      expect(answer.status).toBe(400)
      expect(answer.json()).toEqual({ error: expect.stringContaining("unknown model: 'nobody'") as string })
    }
    expect((await send('POST', '/v2/models/plain/infer', short)).json()).toEqual({
      error: expect.stringMatching(/shape does not match true shape/i) as string,
    })
  })

  it('gives and changes trace settings of the server and of a model', async () => {
    const set = await send(
      'POST',
      '/v2/models/plain/trace/setting',
      '{"trace_level":["TIMESTAMPS"],"trace_rate":"5"}',
    )
    expect(set.json()).toMatchObject({ trace_level: ['TIMESTAMPS'], trace_rate: '5', trace_count: '-1' })
    expect((await send('GET', '/v2/trace/setting')).json()).toMatchObject({
      trace_level: ['OFF'],
      trace_rate: '1000',
    })
    const back = await send('POST', '/v2/models/plain/trace/setting', '{"trace_rate":null}')
    expect(back.json()).toMatchObject({ trace_rate: '1000', trace_level: ['TIMESTAMPS'] })
  })

  it.each(['GET', 'POST'] as const)(
    'have words of their own for a model that is unknown: %s',
    async (method) => {
      const answer = await send(
        method,
        '/v2/models/nobody/trace/setting',
        method === 'POST' ? '{}' : undefined,
      )
      expect([answer.status, answer.json()]).toEqual([400, { error: 'Request for unknown model : nobody' }])
    },
  )

  it('never writes to a file that a client names', async () => {
    const trace = await send('POST', '/v2/trace/setting', '{"trace_file":"/tmp/x"}')
    expect([trace.status, trace.json()]).toEqual([
      501,
      { error: 'trace file location can not be updated through network protocol' },
    ])
    const log = await send('POST', '/v2/logging', '{"log_file":"/tmp/x"}')
    expect([log.status, log.json()]).toEqual([
      501,
      { error: 'log file location can not be updated through network protocol' },
    ])
  })

  it('gives and changes log settings', async () => {
    const set = await send(
      'POST',
      '/v2/logging',
      '{"log_verbose_level":1,"log_format":"ISO8601","log_info":false}',
    )
    expect(set.json()).toEqual({
      log_file: '',
      log_info: false,
      log_warning: true,
      log_error: true,
      log_verbose_level: 1,
      log_format: 'ISO8601',
    })
    expect((await send('POST', '/v2/logging', '{"log_format":"xml"}')).status).toBe(503)
  })
})
