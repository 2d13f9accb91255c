import { Client, credentials, status } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startGrpc, type GrpcServer } from '../../../src/api/grpc/grpc-server.js'
import { encodeMessage, grpcRoot, type Message } from '../../../src/kserve/grpc-schema.js'
import { requestLimits } from '../../../src/serving/request-limits.js'
import { FakeModelServer } from '../../support/fake-model-server.js'
import { silentLog } from '../../support/silent-log.js'

let server: FakeModelServer
let grpc: GrpcServer
let client: Client

beforeEach(async () => {
  server = new FakeModelServer({
    plain: { datatype: 'FP32', shape: [-1] },
    bytes: { datatype: 'UINT8', shape: [-1] },
    strings: { datatype: 'BYTES', shape: [-1] },
  })
  grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log: silentLog() })
  client = new Client(`127.0.0.1:${grpc.port}`, credentials.createInsecure(), {
    'grpc.max_send_message_length': -1,
    'grpc.max_receive_message_length': -1,
  })
})
afterEach(async () => {
  client.close()
  await grpc.stop(0)
})

/** Sends bytes as they are. */
function send(method: string, bytes: Buffer): Promise<unknown> {
  return new Promise((resolve, reject) =>
    client.makeUnaryRequest(
      `/inference.GRPCInferenceService/${method}`,
      (message: Buffer) => message,
      (answer) => answer,
      bytes,
      (error, answer) => (error ? reject(error) : resolve(answer)),
    ),
  )
}

function request(message: Message): Buffer {
  return encodeMessage(grpcRoot.lookupType('inference.ModelInferRequest'), message)
}

/** Field number and length, of a message or bytes. */
function field(number: number, content: Uint8Array): Buffer {
  const length: number[] = []
  for (let left = content.byteLength; ; left = Math.floor(left / 128)) {
    length.push((left % 128) | (left >= 128 ? 128 : 0))
    if (left < 128) break
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), content])
}

const empty = new Uint8Array(0)
const mostBytes = 64 * 1024 * 1024

function filled(piece: Buffer, before: Buffer, bytes = mostBytes): Buffer {
  return Buffer.concat([
    before,
    Buffer.alloc(Math.floor((bytes - before.byteLength) / piece.byteLength) * piece.byteLength, piece),
  ])
}

const before = request({ model_name: 'plain' })
const [inputs, outputs, raw] = [field(5, empty), field(6, empty), field(7, empty)]

/** Heap that is taken and not given back at once, in bytes. */
async function heapTaken(run: () => Promise<unknown>): Promise<number> {
  const heap = process.memoryUsage().heapUsed
  await run()
  return process.memoryUsage().heapUsed - heap
}

describe('a message of the largest size that is nothing but tiny parts', () => {
  it.each([
    ['inputs', inputs, requestLimits.inputs],
    ['outputs', outputs, requestLimits.outputs],
    ['inputs', raw, requestLimits.inputs],
  ])('is refused with too many %s (%#)', async (name, piece, most) => {
    const taken = await heapTaken(() =>
      expect(send('ModelInfer', filled(piece, before))).rejects.toMatchObject({
        code: status.INVALID_ARGUMENT,
        details: `request has more than ${most} ${name}`,
      }),
    )
    expect(taken).toBeLessThan(100_000_000)
  })

  it('is refused with too many sizes in a shape, and too many parameters', async () => {
    const sizes = field(5, field(3, Buffer.alloc(1_000_000, 1)))
    await expect(send('ModelInfer', Buffer.concat([before, sizes]))).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: `request has more than ${requestLimits.dims} dimensions in a shape`,
    })
    const parameters = Object.fromEntries(
      Array.from({ length: requestLimits.parameters + 1 }, (_, at) => [`p${at}`, { bool_param: true }]),
    )
    await expect(send('ModelInfer', request({ model_name: 'plain', parameters }))).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: `request has more than ${requestLimits.parameters} parameters in one place`,
    })
  })

  it.each([
    ['texts', 'strings', 'BYTES', field(8, empty), 4],
    ['numbers that are not packed', 'bytes', 'UINT8', Buffer.from([4 << 3, 7]), 1],
  ] as const)('keeps no object for each of its %s', async (_, model, datatype, element, elementBytes) => {
    const contents = filled(element, Buffer.alloc(0), 4_000_000)
    const count = contents.byteLength / element.byteLength
    const tensor = encodeMessage(grpcRoot.lookupType('inference.ModelInferRequest.InferInputTensor'), {
      name: 'IN',
      datatype,
      shape: [count],
    })
    const input = field(5, Buffer.concat([tensor, field(5, contents)]))
    const message = Buffer.concat([request({ model_name: model }), input])
    const taken = await heapTaken(() => send('ModelInfer', message))
    expect(taken).toBeLessThan(60_000_000)
    expect(server.requests[0]?.inputs[0]?.data.byteLength).toBe(count * elementBytes)
  })

  it('is read in linear time where one tensor has its contents in many parts', async () => {
    const large = field(5, field(6, Buffer.alloc(16_000_000)))
    const input = field(5, filled(field(5, empty), large, 20_000_000))
    await expect(send('ModelInfer', Buffer.concat([before, input]))).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    })
  })

  it.each([
    ['TraceSetting', field(1, empty)],
    ['RepositoryModelLoad', field(3, empty)],
  ])('is refused by %s before it is decoded', async (method, piece) => {
    const taken = await heapTaken(() =>
      expect(send(method, filled(piece, Buffer.alloc(0)))).rejects.toMatchObject({ code: status.INTERNAL }),
    )
    expect(taken).toBeLessThan(100_000_000)
  })
})
