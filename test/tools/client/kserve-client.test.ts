import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { onTestFinished, describe, expect, it } from 'vitest'
import { ServingError } from '../../../src/tensors/serving-error.js'
import { dataOf, type Tensor } from '../../../src/tensors/tensor.js'
import type { InferLane, LaneOutcome, PreparedRequest } from '../../../src/tools/client/infer-lane.js'
import { openClient, type ClientOptions } from '../../../src/tools/client/open-client.js'
import { freePort } from '../../support/free-port.js'
import { TcpProxy } from '../../support/tcp-proxy.js'
import { type ServedModels, servedModels } from '../../support/served-models.js'

const models = {
  plain: { datatype: 'FP32', shape: [-1, 4] },
  longs: { datatype: 'INT64', shape: [2] },
  truths: { datatype: 'BOOL', shape: [3] },
  texts: { datatype: 'BYTES', shape: [-1, 2] },
  halves: { datatype: 'FP16', shape: [2] },
  picture: { datatype: 'UINT8', shape: [-1, 1_200, 1_200] },
} as const

const plain: Tensor = {
  name: 'IN',
  datatype: 'FP32',
  shape: [1, 4],
  data: dataOf(Float32Array.of(1, 2.5, -3, 4)),
}
const longs: Tensor = {
  name: 'IN',
  datatype: 'INT64',
  shape: [2],
  data: dataOf(BigInt64Array.of(-5n, 2n ** 40n)),
}
const truths: Tensor = { name: 'IN', datatype: 'BOOL', shape: [3], data: Uint8Array.of(1, 0, 1) }
const texts: Tensor = {
  name: 'IN',
  datatype: 'BYTES',
  shape: [1, 2],
  data: Buffer.from('\x03\0\0\0abc\x02\0\0\0\xc3\xa9', 'latin1'),
}
const picture: Tensor = {
  name: 'IN',
  datatype: 'UINT8',
  shape: [2, 1_200, 1_200],
  data: new Uint8Array(2 * 1_200 * 1_200).map((_, index) => index % 251),
}

const ways: readonly (readonly [name: string, way: 'http' | 'grpc', options: ClientOptions])[] = [
  ['HTTP with binary tensors', 'http', { form: 'binary' }],
  ['HTTP with tensors in JSON', 'http', { form: 'json' }],
  ['gRPC', 'grpc', {}],
]

async function clientOf(served: ServedModels, way: 'http' | 'grpc', options: ClientOptions = {}) {
  const client = await openClient(served[way], options)
  onTestFinished(() => client.close())
  return client
}

const send = (lane: InferLane, request: PreparedRequest, keep = false) =>
  new Promise<LaneOutcome>((resolve) => lane.send(request, keep, resolve))

describe.each(ways)('a client by %s', (_, way, options) => {
  it('tells what server and models are', async () => {
    const client = await clientOf(await servedModels(models), way, options)
    expect(await client.ready()).toBe(true)
    expect(await client.serverMetadata()).toMatchObject({ name: 'gantry', version: '0.0.0' })
    expect(await client.modelMetadata({ name: 'plain' })).toEqual({
      name: 'plain',
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 4] }],
      outputs: [{ name: 'OUT', datatype: 'FP32', shape: [-1, 4] }],
    })
    expect(await client.modelConfig({ name: 'plain' })).toEqual({ maxBatchSize: 8, steps: [] })
    expect(await client.modelReady({ name: 'plain', version: '1' })).toBe(true)
    expect(await client.modelReady({ name: 'plain', version: '7' })).toBe(false)
  })

  it.each([
    ['plain', plain],
    ['longs', longs],
    ['truths', truths],
    ['texts', texts],
  ])('sends tensors of %s and gives back those that come', async (name, tensor) => {
    const client = await clientOf(await servedModels(models), way, options)
    for (let turn = 0; turn < 3; turn++) {
      const [output, ...more] = await client.infer({ name }, [tensor])
      expect(more).toEqual([])
      expect(output).toMatchObject({ name: 'OUT', datatype: tensor.datatype, shape: tensor.shape })
      expect(Buffer.from(output!.data)).toEqual(Buffer.from(tensor.data))
    }
  })

  it('reads the statistics', async () => {
    const client = await clientOf(await servedModels(models), way, options)
    await client.infer({ name: 'plain' }, [plain])
    const [statistics] = (await client.statistics({ name: 'plain' })) ?? []
    expect(statistics).toMatchObject({ name: 'plain', version: '1', inferenceCount: 1 })
    expect(statistics?.parts.compute_infer).toEqual({ count: 1, ns: 1_000 })
    expect(statistics?.parts.cache_hit.count).toBe(0)
  })

  it('sends one prepared request again and again, with its times', async () => {
    const served = await servedModels(models)
    const client = await clientOf(served, way, options)
    const request = client.prepare({ name: 'plain' }, [plain])
    const lane = client.lane()
    for (let turn = 0; turn < 5; turn++) {
      const { sentMs, writtenMs, firstByteMs, receivedMs, error, answer } = await send(lane, request)
      expect([error, answer]).toEqual([undefined, undefined])
      const times = [sentMs, writtenMs, firstByteMs, receivedMs]
      expect(times).toEqual([...times].sort((a, b) => a - b))
    }
    expect(served.server.requests).toHaveLength(5)
  })

  it('knows a model that is not there', async () => {
    const client = await clientOf(await servedModels(models), way, options)
    const missing = {
      code: 'GANTRY_MODEL_NOT_FOUND',
      message: expect.stringContaining('"nothing"') as string,
    }
    await expect(client.modelMetadata({ name: 'nothing' })).rejects.toMatchObject(missing)
    await expect(client.infer({ name: 'nothing' }, [plain], ['OUT'])).rejects.toMatchObject(missing)
  })

  it('gives the words of a server that refuses', async () => {
    const served = await servedModels(models)
    served.server.onInfer = () =>
      Promise.reject(new ServingError('UNAVAILABLE', 'Exceeds maximum queue size, é'))
    const client = await clientOf(served, way, options)
    await expect(client.infer({ name: 'plain' }, [plain], ['OUT'])).rejects.toMatchObject({
      code: 'GANTRY_MODEL_SERVER',
      status: 503,
      message: expect.stringContaining('Exceeds maximum queue size, é') as string,
    })
  })

  it('tells a server that is lost with a request under way, and after that that none is there', async () => {
    const served = await servedModels(models)
    const proxy = await TcpProxy.start(Number(new URL(served[way]).port))
    const client = await openClient(`${way}://127.0.0.1:${proxy.port}`, options)
    onTestFinished(() => client.close())
    const request = client.prepare({ name: 'plain' }, [plain])
    const lane = client.lane()
    let stopped = Promise.resolve()
    expect((await send(lane, request)).error).toBeUndefined()
    served.server.onInfer = () => {
      stopped = proxy.stop()
      return new Promise(() => undefined)
    }
    const lost = await send(lane, request)
    expect(lost.error).toMatchObject({ name: 'ServerLostError', code: 'GANTRY_SERVER_UNREACHABLE' })
    await stopped
    const refused = await send(lane, request)
    expect(refused.error).toMatchObject({ name: 'ServerUnreachableError' })
  })

  it('does not open where nobody listens', async () => {
    const url = `${way}://127.0.0.1:${await freePort()}`
    await expect(openClient(url, options)).rejects.toMatchObject({
      code: 'GANTRY_SERVER_UNREACHABLE',
      message: expect.stringContaining('ECONNREFUSED') as string,
    })
  })
})

describe.each(ways.filter(([, , { form }]) => form !== 'json'))('a client by %s', (_, way, options) => {
  it('sends and gets tensors of megabytes and half floats', async () => {
    const client = await clientOf(await servedModels(models), way, options)
    const [output] = await client.infer({ name: 'picture' }, [picture])
    expect(Buffer.compare(output!.data, picture.data)).toBe(0)
    const halves: Tensor = { name: 'IN', datatype: 'FP16', shape: [2], data: Uint8Array.of(0, 0x3c, 0, 0x40) }
    expect(Buffer.from((await client.infer({ name: 'halves' }, [halves]))[0]!.data)).toEqual(
      Buffer.from(halves.data),
    )
  })
})

async function serverThat(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server: Server = createServer(answer as never)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a client of other servers', () => {
  it('writes tensors in JSON to one that does not say it reads binary ones, and half floats not at all', async () => {
    const served = await servedModels(models)
    const client = await clientOf(served, 'http')
    expect(client).toMatchObject({ form: 'json' })
    const halves: Tensor = { name: 'IN', datatype: 'FP16', shape: [2], data: new Uint8Array(4) }
    await expect(client.infer({ name: 'halves' }, [halves])).rejects.toMatchObject({
      message: 'FP16 tensors cannot be written in JSON',
    })
  })

  it('does without extensions', async () => {
    const url = await serverThat((request, response) => {
      if (request.url === '/v2') return response.end(JSON.stringify({ name: 'other', version: '3' }))
      return response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not Found</h1>')
    })
    const client = await openClient(url)
    onTestFinished(() => client.close())
    expect(await client.serverMetadata()).toEqual({ name: 'other', version: '3', extensions: [] })
    expect(await client.statistics({ name: 'm' })).toBeUndefined()
    expect(await client.modelConfig({ name: 'm' })).toBeUndefined()
    await expect(client.modelMetadata({ name: 'm' })).rejects.toMatchObject({
      code: 'GANTRY_MODEL_NOT_FOUND',
    })
  })

  it.each([
    ['a page', '<html></html>'],
    ['no object', '3'],
  ])('says that %s is no answer', async (_, body) => {
    const url = await serverThat((_request, response) => response.end(body))
    await expect(openClient(url)).rejects.toMatchObject({
      name: 'ServerAnswerError',
      hint: expect.stringContaining('8000 for HTTP') as string,
    })
  })

  it('says that a port speaks another protocol', async () => {
    const tcp = createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void tcp.close())
    const { port } = tcp.address() as AddressInfo
    await expect(openClient(`http://127.0.0.1:${port}`)).rejects.toMatchObject({ name: 'ServerAnswerError' })
    await expect(openClient(`grpc://127.0.0.1:${port}`)).rejects.toMatchObject({
      code: 'GANTRY_SERVER_UNREACHABLE',
    })
  })

  it('sends the token, and says so when it is wanted', async () => {
    const url = await serverThat((request, response) => {
      const known = request.headers.authorization === 'Bearer secret'
      return response.writeHead(known ? 200 : 401).end(JSON.stringify({ name: 'guarded' }))
    })
    await expect(openClient(url)).rejects.toMatchObject({ code: 'GANTRY_UNAUTHORIZED' })
    const client = await openClient(url, { token: 'secret' })
    expect(await client.serverMetadata()).toMatchObject({ name: 'guarded' })
  })
})
