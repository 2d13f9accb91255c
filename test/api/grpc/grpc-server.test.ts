import { status } from '@grpc/grpc-js'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startGrpc, type GrpcServer } from '../../../src/api/grpc/grpc-server.js'
import { TokenGuesses } from '../../../src/api/token-guesses.js'
import type { Message } from '../../../src/kserve/grpc-schema.js'
import { ServingError } from '../../../src/tensors/serving-error.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { silentLog } from '../../support/silent-log.js'

const models = {
  plain: { datatype: 'FP32', shape: [-1, 4] },
  longs: { datatype: 'INT64', shape: [2] },
  bytes: { datatype: 'UINT8', shape: [3] },
  strings: { datatype: 'BYTES', shape: [-1, 1] },
} as const

let server: FakeModelServer
let grpc: GrpcServer
let client: GrpcClient

async function start(
  options: { token?: string; maxMessageBytes?: number; guesses?: TokenGuesses } = {},
): Promise<void> {
  grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log: silentLog(), ...options })
  client = new GrpcClient(grpc.port)
}

beforeEach(async () => {
  server = new FakeModelServer(models)
  await start()
})
afterEach(async () => {
  client.close()
  await grpc.stop(0)
})

const values = Buffer.from(new Float32Array([1, 2.5, -3, 4]).buffer)
const input = { name: 'IN', datatype: 'FP32', shape: [1, 4] }
const plain = { model_name: 'plain', inputs: [input], raw_input_contents: [values] }

describe('metadata, configuration, statistics', () => {
  it('tells what the server and its models are', async () => {
    expect(await client.call('ServerLive', {})).toEqual({ live: true })
    expect(await client.call('ServerReady', {})).toEqual({ ready: true })
    expect(await client.call('ModelReady', { name: 'plain', version: '7' })).toEqual({ ready: false })
    expect(await client.call('ServerMetadata', {})).toEqual({
      name: 'gantry',
      version: '0.0.0',
      extensions: server.extensions,
    })
    expect(await client.call('ModelMetadata', { name: 'plain' })).toEqual({
      name: 'plain',
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 4] }],
      outputs: [{ name: 'OUT', datatype: 'FP32', shape: [-1, 4] }],
    })
  })

  it('gives configuration and statistics', async () => {
    expect(await client.call('ModelConfig', { name: 'plain' })).toMatchObject({
      config: {
        name: 'plain',
        max_batch_size: 8,
        input: [{ name: 'IN', data_type: 'TYPE_FP32', dims: [4] }],
      },
    })
    await client.call('ModelInfer', plain)
    const { model_stats } = await client.call('ModelStatistics', { name: 'plain' })
    expect(model_stats).toMatchObject([
      {
        name: 'plain',
        version: '1',
        inference_count: 1,
        inference_stats: { success: { count: 1, ns: 1000 } },
      },
    ])
  })

  it('knows its health by service', async () => {
    expect(await client.call('grpc.health.v1.Health/Check', {})).toEqual({ status: 'SERVING' })
    server.isReady = false
    expect(
      await client.call('grpc.health.v1.Health/Check', { service: 'inference.GRPCInferenceService' }),
    ).toEqual({
      status: 'NOT_SERVING',
    })
    await expect(client.call('grpc.health.v1.Health/Check', { service: 'x' })).rejects.toMatchObject({
      code: status.NOT_FOUND,
    })
  })
})

describe('ModelInfer', () => {
  it('takes raw contents and gives raw contents', async () => {
    const answer = await client.call('ModelInfer', { ...plain, id: 'a' })
    expect(answer).toMatchObject({
      model_name: 'plain',
      model_version: '1',
      id: 'a',
      outputs: [{ name: 'OUT', datatype: 'FP32', shape: [1, 4] }],
      raw_output_contents: [values],
    })
  })

  it.each([
    ['FP32', 'plain', [1, 4], { fp32_contents: [1, 2.5, -3, 4] }, values],
    ['INT64', 'longs', [2], { int64_contents: [-2, 5] }, Buffer.from(new BigInt64Array([-2n, 5n]).buffer)],
    ['UINT8', 'bytes', [3], { uint_contents: [1, 200, 255] }, Buffer.from([1, 200, 255])],
    ['BYTES', 'strings', [1, 1], { bytes_contents: [Buffer.from('abc')] }, Buffer.from('\x03\0\0\0abc')],
  ] as const)('takes typed contents of %s', async (datatype, model, shape, contents, bytes) => {
    const request = { model_name: model, inputs: [{ name: 'IN', datatype, shape, contents }] }
    expect((await client.call('ModelInfer', request))['raw_output_contents']).toEqual([bytes])
  })

  it('reads parameters: those of schedule and sequence, and those of nobody', async () => {
    await client.call('ModelInfer', {
      ...plain,
      parameters: {
        priority: { int64_param: 2 },
        timeout: { int64_param: 500 },
        sequence_id: { int64_param: 7 },
        sequence_start: { bool_param: true },
        mine: { string_param: 'x' },
        limit: { double_param: 1.5 },
      },
    })
    expect(server.requests[0]).toMatchObject({
      priority: 2,
      timeoutUs: 500,
      sequence: { id: '7', start: true, end: false },
      parameters: { mine: 'x', limit: 1.5 },
    })
  })

  it('gives classes in place of values', async () => {
    const outputs = [{ name: 'OUT', parameters: { classification: { int64_param: 1 } } }]
    expect(await client.call('ModelInfer', { ...plain, outputs })).toMatchObject({
      outputs: [{ name: 'OUT', datatype: 'BYTES', shape: [1, 1] }],
      raw_output_contents: [Buffer.from('\x0a\0\0\x004.000000:3')],
    })
  })

  it.each([
    [
      'an unknown model',
      { ...plain, model_name: 'x' },
      status.INVALID_ARGUMENT,
      /unknown model: 'x' is not found/,
    ],
    [
      'a version that is no number',
      { ...plain, model_version: 'a' },
      status.INVALID_ARGUMENT,
      /failed to get model version/,
    ],
    ['a version not there', { ...plain, model_version: '9' }, status.UNAVAILABLE, /version 9 is not found/],
    [
      'too few bytes',
      { ...plain, raw_input_contents: [values.subarray(4)] },
      status.INVALID_ARGUMENT,
      /Expected 16, got 12$/,
    ],
    [
      'no data',
      { ...plain, raw_input_contents: [] },
      status.INVALID_ARGUMENT,
      /unable to find data for input tensor 'IN' for model 'plain' in request/,
    ],
    [
      'data both ways',
      { ...plain, inputs: [{ ...input, contents: { fp32_contents: [1] } }] },
      status.INVALID_ARGUMENT,
      /contents field must not be specified when using raw_input_contents/,
    ],
    [
      'too many contents',
      { ...plain, raw_input_contents: [values, values] },
      status.INVALID_ARGUMENT,
      /raw_input_contents for 1 inputs but got 2/,
    ],
    [
      'contents of another type',
      { ...plain, raw_input_contents: [], inputs: [{ ...input, contents: { int_contents: [1] } }] },
      status.INVALID_ARGUMENT,
      /of type 'INT8', expected datatype 'FP32'/,
    ],
    [
      'a negative size',
      { ...plain, inputs: [{ ...input, shape: [-1, 4] }] },
      status.INVALID_ARGUMENT,
      /contains one or more invalid dimensions/,
    ],
    [
      'a product past what is safe',
      { ...plain, inputs: [{ ...input, shape: [2 ** 40, 2 ** 40] }] },
      status.INVALID_ARGUMENT,
      /causes total element count to exceed/,
    ],
    [
      'half floats that are not raw',
      {
        ...plain,
        raw_input_contents: [],
        inputs: [{ ...input, datatype: 'FP16', contents: { fp32_contents: [1] } }],
      },
      status.INVALID_ARGUMENT,
      /expected datatype 'FP16'/,
    ],
    [
      'a reserved parameter',
      { ...plain, parameters: { triton_x: { bool_param: true } } },
      status.INVALID_ARGUMENT,
      /reserved for Triton usage/,
    ],
    [
      'shared memory',
      {
        ...plain,
        inputs: [
          {
            ...input,
            parameters: {
              shared_memory_region: { string_param: 'r' },
              shared_memory_byte_size: { int64_param: 16 },
            },
          },
        ],
        raw_input_contents: [],
      },
      status.UNIMPLEMENTED,
      /shared memory is not supported/,
    ],
  ] as const)('refuses %s', async (_, request, code, details) => {
    await expect(client.call('ModelInfer', request)).rejects.toMatchObject({
      code,
      details: expect.stringMatching(details) as string,
    })
  })

  it.each([
    ['INTERNAL', status.INTERNAL],
    ['NOT_FOUND', status.NOT_FOUND],
    ['UNAVAILABLE', status.UNAVAILABLE],
    ['UNSUPPORTED', status.UNIMPLEMENTED],
    ['INVALID_ARG', status.INVALID_ARGUMENT],
    ['ALREADY_EXISTS', status.ALREADY_EXISTS],
    ['CANCELLED', status.CANCELLED],
    ['UNKNOWN', status.UNKNOWN],
  ] as const)('answers %s with %d', async (failure, code) => {
    server.onInfer = () => Promise.reject(new ServingError(failure, 'so it is'))
    await expect(client.call('ModelInfer', plain)).rejects.toMatchObject({ code, details: 'so it is' })
  })

  it('keeps the words of an unforeseen error to itself', async () => {
    server.onInfer = () => Promise.reject(new Error('secret'))
    await expect(client.call('ModelInfer', plain)).rejects.toMatchObject({ details: 'internal error' })
  })

  it('aborts a request whose deadline passes', async () => {
    const aborted = new Promise<void>((resolve) => {
      server.onInfer = (request) =>
        new Promise((_, reject) => {
          request.signal?.addEventListener('abort', () => {
            resolve()
            reject(new ServingError('CANCELLED', 'gone'))
          })
        })
    })
    // Connected before, so that the request comes within its time.
    await client.call('ServerLive', {})
    await expect(client.call('ModelInfer', plain, { deadlineMs: 500 })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    })
    await aborted
  })

  it('refuses a message over the limit', async () => {
    await grpc.stop(0)
    await start({ maxMessageBytes: 10_000 })
    const large = {
      ...plain,
      inputs: [{ ...input, shape: [1000, 4] }],
      raw_input_contents: [Buffer.alloc(16_000)],
    }
    await expect(client.call('ModelInfer', large)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED })
  })
})

describe('ModelStreamInfer', () => {
  it('answers in the order of the requests, whichever is done first', async () => {
    const waiting: (() => void)[] = []
    server.onInfer = (request) =>
      new Promise((resolve) => {
        waiting.push(() =>
          resolve([{ ...input, name: 'OUT', datatype: 'FP32', data: request.inputs[0]?.data ?? values }]),
        )
        if (waiting.length === 3) for (const go of waiting.reverse()) go()
      })
    expect(await exchange(['a', 'b', 'c'])).toEqual(['a', 'b', 'c'])
  })

  it('tells of a request that failed, and goes on', async () => {
    server.onInfer = (request) =>
      request.id === 'b'
        ? Promise.reject(new ServingError('UNAVAILABLE', 'Exceeds maximum queue size'))
        : Promise.resolve([{ ...input, name: 'OUT', datatype: 'FP32', data: values }])
    expect(await exchange(['a', 'b', 'c'])).toEqual(['a', 'b: Exceeds maximum queue size', 'c'])
  })

  it('marks the last answer to a request', async () => {
    const stream = client.stream('ModelStreamInfer')
    stream.write(plain)
    const [answer] = (await once(stream, 'data')) as [Message]
    expect(answer).toHaveProperty('infer_response.parameters.triton_final_response.bool_param', true)
    stream.end()
    await once(stream, 'end')
  })

  async function exchange(ids: readonly string[]): Promise<string[]> {
    const stream = client.stream('ModelStreamInfer')
    const answers: string[] = []
    stream.on(
      'data',
      ({ error_message, infer_response }: { error_message: string; infer_response: { id: string } }) =>
        answers.push(error_message === '' ? infer_response.id : `${infer_response.id}: ${error_message}`),
    )
    for (const id of ids) stream.write({ ...plain, id })
    stream.end()
    await once(stream, 'end')
    return answers
  }
})

describe('repository and settings', () => {
  it('lists, loads and unloads', async () => {
    expect((await client.call('RepositoryIndex', { ready: true }))['models']).toHaveLength(4)
    await client.call('RepositoryModelLoad', {
      model_name: 'plain',
      parameters: {
        config: { string_param: '{}' },
        'file:1/model.onnx': { bytes_param: Buffer.from('onnx') },
      },
    })
    expect(server.loads[0]?.request.config).toBe('{}')
    expect(Buffer.from(server.loads[0]?.request.files.get('1/model.onnx') ?? []).toString()).toBe('onnx')
    await client.call('RepositoryModelUnload', {
      model_name: 'plain',
      parameters: { unload_dependents: { bool_param: true } },
    })
    expect(server.unloads).toEqual([{ name: 'plain', dependents: true }])
    await expect(
      client.call('RepositoryModelLoad', { model_name: 'plain', repository_name: 'mine' }),
    ).rejects.toMatchObject({ code: status.UNIMPLEMENTED })
  })

  it('gives and changes settings, but for files', async () => {
    const trace = await client.call('TraceSetting', {
      settings: { trace_rate: { value: ['5'] } },
      model_name: 'plain',
    })
    expect(trace).toMatchObject({
      settings: { trace_rate: { value: ['5'] }, trace_level: { value: ['OFF'] } },
    })
    const cleared = await client.call('TraceSetting', { settings: { trace_rate: {} }, model_name: 'plain' })
    expect(cleared).toMatchObject({ settings: { trace_rate: { value: ['1000'] } } })
    await expect(client.call('TraceSetting', { model_name: 'nobody' })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'Request for unknown model : nobody',
    })
    const log = await client.call('LogSettings', { settings: { log_verbose_level: { uint32_param: 2 } } })
    expect(log).toMatchObject({
      settings: { log_verbose_level: { uint32_param: 2 }, log_info: { bool_param: true } },
    })
    await expect(
      client.call('LogSettings', { settings: { log_file: { string_param: '/tmp/x' } } }),
    ).rejects.toMatchObject({ code: status.UNIMPLEMENTED })
  })

  it('answers UNIMPLEMENTED to shared memory', async () => {
    await expect(client.call('SystemSharedMemoryStatus', {})).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    })
    await expect(client.call('CudaSharedMemoryRegister', {})).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    })
  })
})

describe('access', () => {
  it('S5: needs the token for everything but health', async () => {
    await grpc.stop(0)
    await start({ token: 'secret-token' })
    for (const method of ['ServerMetadata', 'ModelReady', 'RepositoryIndex'])
      await expect(client.call(method, {})).rejects.toMatchObject({ code: status.UNAUTHENTICATED })
    expect(await client.call('grpc.health.v1.Health/Check', {})).toEqual({ status: 'SERVING' })
    expect(await client.call('ServerLive', {})).toEqual({ live: true })
    expect(await client.call('ServerReady', {})).toEqual({ ready: true })
    const knowing = new GrpcClient(grpc.port, { authorization: 'Bearer secret-token' })
    expect(await knowing.call('ServerMetadata', {})).toHaveProperty('version')
    expect(await knowing.call('ModelInfer', plain)).toHaveProperty('raw_output_contents', [values])
    knowing.close()
  })

  it('S21: counts wrong tokens of an address, until the right one is not looked at either', async () => {
    await grpc.stop(0)
    await start({ token: 'secret-token', guesses: new TokenGuesses(3) })
    const told = async (token: string) => {
      const guessing = new GrpcClient(grpc.port, { authorization: `Bearer ${token}` })
      return guessing
        .call('ServerMetadata', {})
        .then(
          () => status.OK,
          (error: { code: status }) => error.code,
        )
        .finally(() => guessing.close())
    }
    expect(await told('secret-token')).toBe(status.OK)
    // Each on a connection, and from a port, of its own.
    for (let guess = 0; guess < 3; guess += 1)
      expect(await told(`guess-${guess}`)).toBe(status.UNAUTHENTICATED)
    expect(await told('secret-token')).toBe(status.RESOURCE_EXHAUSTED)
    expect(await client.call('ServerLive', {})).toEqual({ live: true })
  })
})
