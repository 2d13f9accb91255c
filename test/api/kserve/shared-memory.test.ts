import { status as grpcCode } from '@grpc/grpc-js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startGrpc } from '../../../src/api/grpc/grpc-server.js'
import { createKserveApp } from '../../../src/api/kserve/kserve-app.js'
import type { Message } from '../../../src/kserve/grpc-schema.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { addSubOnnx } from '../../support/model-repository.js'
import { addModel } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { SharedObject } from '../../support/shared-memory.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

const rowBytes = 64
const [ones, twos] = [1, 2].map((value) => Buffer.from(Float32Array.from({ length: 16 }, () => value).buffer))
const threes = Buffer.from(Float32Array.from({ length: 16 }, () => 3).buffer)
const log = silentLog()

/** `add_sub` by both protocols, with shared memory on. */
async function clients() {
  const repository = tempDir()
  addModel(repository, 'add_sub', { onnx: addSubOnnx() })
  const server = await serveRepository(repository, { sharedBytes: 1024 ** 2 })
  const app = createKserveApp(server, { maxBodyBytes: 1024 ** 2, log })
  const grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log })
  const client = new GrpcClient(grpc.port)
  onTestFinished(async () => {
    client.close()
    await grpc.stop(0)
    await app.close()
    server.sharedMemory?.unregister('')
  })
  const http = async (method: 'GET' | 'POST', url: string, body?: unknown) => {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await app.inject({ method, url, ...(payload === undefined ? {} : { payload }) })
    return {
      status: answer.statusCode,
      headers: answer.headers,
      json:
        answer.headers['inference-header-content-length'] === undefined && answer.payload !== ''
          ? answer.json<Record<string, unknown>>()
          : '',
      body: answer.rawPayload,
    }
  }
  return { server, http, client }
}

/** Two rows of input, room for two of output. */
function memory() {
  return new SharedObject(Buffer.concat([ones!, twos!, Buffer.alloc(2 * rowBytes)]))
}

const place = (offset: number) => ({
  shared_memory_region: 'r',
  shared_memory_byte_size: rowBytes,
  ...(offset === 0 ? {} : { shared_memory_offset: offset }),
})
const input = (name: string, offset: number) => ({
  name,
  datatype: 'FP32',
  shape: [1, 16],
  parameters: place(offset),
})

const inMessage = (offset: number) => ({
  shared_memory_region: { string_param: 'r' },
  shared_memory_byte_size: { int64_param: rowBytes },
  shared_memory_offset: { int64_param: offset },
})
const inputMessage = (name: string, offset: number) => ({
  name,
  datatype: 'FP32',
  shape: [1, 16],
  parameters: inMessage(offset),
})

describe('shared memory, by HTTP', () => {
  it('is among the extensions, and registered, told and taken back', async () => {
    const { http } = await clients()
    const { key } = memory()
    expect((await http('GET', '/v2')).json).toMatchObject({
      extensions: expect.arrayContaining(['system_shared_memory']) as unknown,
    })
    const region = '/v2/systemsharedmemory/region/r'
    expect(await http('POST', `${region}/register`, { key, offset: 64, byte_size: 128 })).toMatchObject({
      status: 200,
      json: '',
    })
    const told = [{ name: 'r', key, offset: 64, byte_size: 128 }]
    expect((await http('GET', `${region}/status`)).json).toEqual(told)
    expect((await http('GET', '/v2/systemsharedmemory/status')).json).toEqual(told)
    expect(await http('POST', `${region}/register`, { key, byte_size: 8 })).toMatchObject({
      status: 400,
      json: { error: "shared memory region 'r' already in manager" },
    })
    expect((await http('POST', `${region}/unregister`)).status).toBe(200)
    expect(await http('GET', `${region}/status`)).toMatchObject({
      status: 404,
      json: { error: "Unable to find system shared memory region: 'r'" },
    })
    await http('POST', `${region}/register`, { key, byte_size: 8 })
    expect((await http('POST', '/v2/systemsharedmemory/unregister')).status).toBe(200)
    expect((await http('GET', '/v2/systemsharedmemory/status')).json).toEqual([])
  })

  it.each([
    [
      'without a name',
      '/v2/systemsharedmemory/register',
      { key: '/k', byte_size: 8 },
      "'region name' is necessary",
    ],
    ['without a body', '/v2/systemsharedmemory/region/r/register', undefined, "has no 'key' field"],
    ['without a key', '/v2/systemsharedmemory/region/r/register', { byte_size: 8 }, "has no 'key' field"],
    ['without a size', '/v2/systemsharedmemory/region/r/register', { key: '/k' }, "has no 'byte_size' field"],
    [
      'with a number for a key',
      '/v2/systemsharedmemory/region/r/register',
      { key: 1, byte_size: 8 },
      "Unable to parse 'key'",
    ],
    [
      'with a text for a size',
      '/v2/systemsharedmemory/region/r/register',
      { key: '/k', byte_size: '8' },
      "Unable to parse 'byte_size'",
    ],
    [
      'with a negative offset',
      '/v2/systemsharedmemory/region/r/register',
      { key: '/k', byte_size: 8, offset: -1 },
      "Unable to parse 'offset'",
    ],
    [
      'with half a size',
      '/v2/systemsharedmemory/region/r/register',
      { key: '/k', byte_size: 8.5 },
      "Unable to parse 'byte_size'",
    ],
    ['with a body that is none', '/v2/systemsharedmemory/region/r/register', '{', 'JSON'],
    [
      'on a GPU',
      '/v2/cudasharedmemory/region/r/register',
      { raw_handle: { b64: 'AA==' }, device_id: 0, byte_size: 8 },
      "failed to register CUDA shared memory region: 'r', CUDA shared memory is not supported",
    ],
  ])('is refused %s', async (_, url, body, message) => {
    const { http } = await clients()
    const { status, json } = await http('POST', url, body)
    expect(status).toBe(400)
    expect(JSON.stringify(json)).toContain(message)
  })

  it('has none on a GPU, which clients may take back', async () => {
    const { http } = await clients()
    expect((await http('GET', '/v2/cudasharedmemory/status')).json).toEqual([])
    for (const path of ['', '/region/r'])
      expect((await http('POST', `/v2/cudasharedmemory${path}/unregister`)).status).toBe(200)
    expect((await http('GET', '/v2/cudasharedmemory/region/r/status')).status).toBe(404)
  })

  it('knows no other methods', async () => {
    const { http } = await clients()
    expect((await http('POST', '/v2/systemsharedmemory/status')).status).toBe(405)
    expect((await http('GET', '/v2/systemsharedmemory/region/r/register')).status).toBe(405)
  })

  it('gives inputs and takes outputs, beside others that are sent', async () => {
    const { http, server } = await clients()
    const object = memory()
    server.sharedMemory?.register({ name: 'r', key: object.key, offset: 0, byteSize: 4 * rowBytes })
    const outputs = [
      { name: 'OUTPUT0', parameters: place(2 * rowBytes) },
      { name: 'OUTPUT1', parameters: { binary_data: true } },
    ]
    const inputs = [input('INPUT0', 0), input('INPUT1', rowBytes)]
    const answer = await http('POST', '/v2/models/add_sub/infer', { inputs, outputs })
    expect(answer.status).toBe(200)
    const headerBytes = Number(answer.headers['inference-header-content-length'])
    expect(JSON.parse(answer.body.subarray(0, headerBytes).toString())).toEqual({
      model_name: 'add_sub',
      model_version: '1',
      outputs: [
        { name: 'OUTPUT0', datatype: 'FP32', shape: [1, 16] },
        { name: 'OUTPUT1', datatype: 'FP32', shape: [1, 16], parameters: { binary_data_size: rowBytes } },
      ],
    })
    expect(object.bytes.subarray(2 * rowBytes, 3 * rowBytes)).toEqual(threes)
    expect(object.bytes.subarray(3 * rowBytes)).toEqual(Buffer.alloc(rowBytes))
    const mixed = [
      input('INPUT0', 0),
      { name: 'INPUT1', datatype: 'FP32', shape: [1, 16], data: Array<number>(16).fill(2) },
    ]
    const sum = await http('POST', '/v2/models/add_sub/infer', {
      inputs: mixed,
      outputs: [{ name: 'OUTPUT0' }],
    })
    expect(sum.json).toMatchObject({ outputs: [{ data: Array<number>(16).fill(3) }] })
  })

  it.each([
    [
      'a region that is no text',
      { shared_memory_region: 1, shared_memory_byte_size: 64 },
      {},
      "Unable to parse 'shared_memory_region'",
    ],
    [
      'an offset that is no number',
      { ...place(0), shared_memory_offset: '0' },
      {},
      "Unable to parse 'shared_memory_offset'",
    ],
    [
      'data beside it',
      { ...place(0), binary_data_size: 64 },
      {},
      'Input must set only one of the following fields',
    ],
    [
      'an output in binary beside it',
      place(0),
      { ...place(0), binary_data: true },
      "Output can't set both 'shared_memory_region' and 'binary_data'",
    ],
    [
      'classes of it',
      place(0),
      { ...place(0), classification: 2 },
      "Output can't set both 'shared_memory_region' and 'classification'",
    ],
  ])('is refused with %s', async (_, parameters, outputParameters, message) => {
    const { http, server } = await clients()
    const object = memory()
    server.sharedMemory?.register({ name: 'r', key: object.key, offset: 0, byteSize: 4 * rowBytes })
    const inputs = [{ ...input('INPUT0', 0), parameters }, input('INPUT1', rowBytes)]
    const outputs = [{ name: 'OUTPUT0', parameters: outputParameters }]
    const { status, json } = await http('POST', '/v2/models/add_sub/infer', { inputs, outputs })
    expect(status).toBe(400)
    expect(JSON.stringify(json)).toContain(message)
  })
})

describe('shared memory, by gRPC', () => {
  it('is among the extensions, and registered, told and taken back', async () => {
    const { client } = await clients()
    const { key } = memory()
    expect(await client.call('ServerMetadata', {})).toMatchObject({
      extensions: expect.arrayContaining(['system_shared_memory']) as unknown,
    })
    await client.call('SystemSharedMemoryRegister', { name: 'r', key, offset: 64, byte_size: 128 })
    const told = { regions: { r: { name: 'r', key, offset: 64, byte_size: 128 } } }
    expect(await client.call('SystemSharedMemoryStatus', {})).toEqual(told)
    expect(await client.call('SystemSharedMemoryStatus', { name: 'r' })).toEqual(told)
    await expect(
      client.call('SystemSharedMemoryRegister', { name: 'r', key, byte_size: 8 }),
    ).rejects.toMatchObject({ code: grpcCode.ALREADY_EXISTS })
    await client.call('SystemSharedMemoryUnregister', { name: 'r' })
    await expect(client.call('SystemSharedMemoryStatus', { name: 'r' })).rejects.toMatchObject({
      code: grpcCode.NOT_FOUND,
    })
    await client.call('SystemSharedMemoryUnregister', {})
    expect(await client.call('SystemSharedMemoryStatus', {})).toEqual({ regions: {} })
  })

  it('has none on a GPU, which clients may take back', async () => {
    const { client } = await clients()
    expect(await client.call('CudaSharedMemoryStatus', {})).toEqual({ regions: {} })
    await client.call('CudaSharedMemoryUnregister', {})
    await client.call('CudaSharedMemoryUnregister', { name: 'r' })
    await expect(client.call('CudaSharedMemoryRegister', { name: 'r', byte_size: 8 })).rejects.toMatchObject({
      code: grpcCode.INVALID_ARGUMENT,
      details:
        "failed to register CUDA shared memory region: 'r', CUDA shared memory is not supported by this server",
    })
  })

  it.each(['ModelInfer', 'ModelStreamInfer'])(
    'gives inputs and takes outputs, beside others that are sent: %s',
    async (method) => {
      const { client, server } = await clients()
      const object = memory()
      server.sharedMemory?.register({ name: 'r', key: object.key, offset: 0, byteSize: 4 * rowBytes })
      const message = {
        model_name: 'add_sub',
        inputs: [inputMessage('INPUT0', 0), { name: 'INPUT1', datatype: 'FP32', shape: [1, 16] }],
        outputs: [{ name: 'OUTPUT0', parameters: inMessage(2 * rowBytes) }, { name: 'OUTPUT1' }],
        raw_input_contents: [twos],
      }
      const answered = async (): Promise<Message> => {
        if (method === 'ModelInfer') return client.call(method, message)
        const stream = client.stream(method)
        onTestFinished(() => void stream.cancel())
        stream.on('error', () => undefined)
        const first = new Promise<Message>((resolve) => stream.once('data', resolve))
        stream.write(message)
        return (await first)['infer_response'] as Message
      }
      expect(await answered()).toMatchObject({
        outputs: [
          { name: 'OUTPUT0', datatype: 'FP32', shape: [1, 16] },
          { name: 'OUTPUT1', datatype: 'FP32', shape: [1, 16] },
        ],
        // As Triton: an empty place for what is in shared memory.
        raw_output_contents: [
          Buffer.alloc(0),
          Buffer.from(Float32Array.from({ length: 16 }, () => -1).buffer),
        ],
      })
      expect(object.bytes.subarray(2 * rowBytes, 3 * rowBytes)).toEqual(threes)
    },
  )

  it.each([
    [
      'a region that is no text',
      { ...inMessage(0), shared_memory_region: { int64_param: 1 } },
      "invalid value type for 'shared_memory_region' parameter for tensor 'INPUT0', expected string_param.",
    ],
    [
      'an offset that is no number',
      { ...inMessage(0), shared_memory_offset: { string_param: '0' } },
      "invalid value type for 'shared_memory_offset' parameter for tensor 'INPUT0', expected int64_param.",
    ],
    [
      'a size that is no number',
      { ...inMessage(0), shared_memory_byte_size: { bool_param: true } },
      "invalid value type for 'shared_memory_byte_size' parameter for tensor 'INPUT0', expected int64_param.",
    ],
    [
      'no size',
      { shared_memory_region: { string_param: 'r' } },
      "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'INPUT0'",
    ],
    [
      'an offset without a region',
      { shared_memory_offset: { int64_param: 0 } },
      "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'INPUT0'",
    ],
    ['a negative offset', inMessage(-1), "Invalid offset for shared memory region: 'r'"],
    [
      'a negative size',
      { ...inMessage(0), shared_memory_byte_size: { int64_param: -1 } },
      "Invalid offset + byte size for shared memory region: 'r'",
    ],
  ])('is refused with %s', async (_, parameters, details) => {
    const { client, server } = await clients()
    server.sharedMemory?.register({ name: 'r', key: memory().key, offset: 0, byteSize: 4 * rowBytes })
    const inputs = [{ ...inputMessage('INPUT0', 0), parameters }, inputMessage('INPUT1', rowBytes)]
    await expect(client.call('ModelInfer', { model_name: 'add_sub', inputs })).rejects.toMatchObject({
      code: grpcCode.INVALID_ARGUMENT,
      details,
    })
  })

  it('is refused beside data of the same input, for classes, and where raw inputs are too many', async () => {
    const { client, server } = await clients()
    server.sharedMemory?.register({ name: 'r', key: memory().key, offset: 0, byteSize: 4 * rowBytes })
    const inputs = [inputMessage('INPUT0', 0), inputMessage('INPUT1', rowBytes)]
    const send = (more: Message) => client.call('ModelInfer', { model_name: 'add_sub', inputs, ...more })
    await expect(
      send({ inputs: [{ ...inputs[0], contents: { fp32_contents: [1] } }, inputs[1]] }),
    ).rejects.toMatchObject({
      details:
        "unexpected 'content' provided when using shared memory for input tensor 'INPUT0' for model 'add_sub'",
    })
    const parameters = { ...inMessage(0), classification: { int64_param: 1 } }
    await expect(send({ outputs: [{ name: 'OUTPUT0', parameters }] })).rejects.toMatchObject({
      details: "output can't set both 'shared_memory_region' and 'classification'",
    })
    await expect(send({ raw_input_contents: [ones] })).rejects.toMatchObject({
      details: "expected raw_input_contents for 0 inputs but got 1 for model 'add_sub'",
    })
  })
})
