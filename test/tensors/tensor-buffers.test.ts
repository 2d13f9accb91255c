import type { FastifyInstance } from 'fastify'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { startGrpc } from '../../src/api/grpc/grpc-server.js'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import { copiedBytes } from '../../src/tensors/tensor-buffers.js'
import { ServingMetrics } from '../../src/serving/metrics/serving-metrics.js'
import type { ScheduledModel } from '../../src/runtime/scheduled-model.js'
import { FakeModelServer } from '../support/fake-model-server.js'
import { GrpcClient } from '../support/grpc-client.js'
import { buildOnnx, type TensorSpec } from '../support/onnx-builder.js'
import { scheduledModel } from '../support/scheduled-model.js'
import { silentLog } from '../support/silent-log.js'

const imageBytes = 1_228_800
const inputs: readonly TensorSpec[] = [
  { name: 'image', type: 'float32', shape: [3, 320, 320] },
  { name: 'other', type: 'float32', shape: [3, 320, 320] },
  { name: 'scale', type: 'float32', shape: [1] },
]

/** The largest elements of its inputs. */
const largest = (count: readonly number[]): Uint8Array =>
  buildOnnx({
    inputs: count.map((index) => inputs[index]!),
    outputs: count.map((index) => ({ name: `max_${inputs[index]!.name}`, type: 'float32', shape: [] })),
    nodes: count.map((index) => ({
      op: 'ReduceMax',
      inputs: [inputs[index]!.name],
      outputs: [`max_${inputs[index]!.name}`],
      attributes: { keepdims: 0 },
    })),
  })

const image = Buffer.from(new Float32Array(imageBytes / 4).fill(0.25).fill(7, -1).buffer)
const scale = Buffer.from(new Float32Array([0.5]).buffer)
const blobs = [image, image, scale]

let server: FakeModelServer

async function serve(which: readonly number[]): Promise<ScheduledModel> {
  const model = await scheduledModel(largest(which), 'instance_group { count: 1 kind: KIND_CPU }')
  server.onInfer = (request) => model.infer(request)
  return model
}

function messageOf(which: readonly number[]) {
  return which.map((index) => ({ name: inputs[index]!.name, datatype: 'FP32', shape: inputs[index]!.shape }))
}

async function http(): Promise<string> {
  const app: FastifyInstance = createKserveApp(server, { maxBodyBytes: 8_000_000, log: silentLog() })
  onTestFinished(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}

/** The largest elements, by HTTP with binary tensors. @param padding - bytes that make the JSON longer. */
async function askHttp(url: string, which: readonly number[], padding = 0): Promise<number[]> {
  const described = messageOf(which).map((input, at) => ({
    ...input,
    parameters: { binary_data_size: blobs[which[at]!]!.byteLength },
  }))
  const header = Buffer.from(
    JSON.stringify({ inputs: described, parameters: { binary_data_output: false } }) + ' '.repeat(padding),
  )
  const answer = await fetch(`${url}/v2/models/m/infer`, {
    method: 'POST',
    headers: { 'inference-header-content-length': String(header.byteLength) },
    body: Buffer.concat([header, ...which.map((index) => blobs[index]!)]),
  })
  expect(answer.status).toBe(200)
  const { outputs } = (await answer.json()) as { outputs: { data: number[] }[] }
  return outputs.map(({ data }) => data[0]!)
}

async function grpc(): Promise<GrpcClient> {
  const started = await startGrpc(server, { host: '127.0.0.1', port: 0, log: silentLog() })
  const client = new GrpcClient(started.port)
  onTestFinished(async () => {
    client.close()
    await started.stop(0)
  })
  return client
}

/** The largest elements, by gRPC with raw tensors. @param id - of the request; its length shifts the tensors. */
async function askGrpc(client: GrpcClient, which: readonly number[], id = ''): Promise<number[]> {
  const answer = await client.call('ModelInfer', {
    model_name: 'm',
    id,
    inputs: messageOf(which),
    raw_input_contents: which.map((index) => blobs[index]!),
  })
  const raw = answer['raw_output_contents'] as Buffer[]
  return raw.map((data) => data.readFloatLE())
}

async function copiedBy(ask: () => Promise<number[]>, answers: readonly number[]): Promise<number> {
  const before = copiedBytes()
  expect(await ask()).toEqual(answers)
  return copiedBytes() - before
}

beforeEach(() => {
  server = new FakeModelServer({ m: { datatype: 'FP32', shape: [3, 320, 320] } })
})

/** Answers are of a few bytes. */
const few = 1_000

describe('bytes copied after the socket', () => {
  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    'are those of the body once by HTTP, JSON longer by %i',
    async (padding) => {
      const model = await serve([0])
      const url = await http()
      const copied = await copiedBy(() => askHttp(url, [0], padding), [7])
      expect(copied).toBeGreaterThanOrEqual(imageBytes)
      expect(copied).toBeLessThan(imageBytes + few)
      expect(model.recorder.copiedBytes).toBe(0)
    },
  )

  it('are at most two of each tensor by gRPC, one where it lies aligned', async () => {
    await serve([0])
    const client = await grpc()
    const copies: number[] = []
    for (const id of ['', 'a', 'ab', 'abc', 'abcd'])
      copies.push((await copiedBy(() => askGrpc(client, [0], id), [7])) / imageBytes)
    expect(Math.max(...copies)).toBeLessThanOrEqual(2 + few / imageBytes)
    expect(copies.filter((count) => count < 1.01).length).toBeGreaterThanOrEqual(1)
  })

  it('stay so for a large tensor with a small one beside it, which shares its body', async () => {
    await serve([0, 2])
    const url = await http()
    expect(await copiedBy(() => askHttp(url, [0, 2]), [7, 0.5])).toBeLessThan(imageBytes + few)
    const client = await grpc()
    expect(await copiedBy(() => askGrpc(client, [0, 2]), [7, 0.5])).toBeLessThanOrEqual(2 * imageBytes + few)
  })

  it('are two of each where several large tensors share a body', async () => {
    await serve([0, 1])
    const url = await http()
    expect(await copiedBy(() => askHttp(url, [0, 1]), [7, 7])).toBeLessThanOrEqual(4 * imageBytes + few)
    const client = await grpc()
    expect(await copiedBy(() => askGrpc(client, [0, 1]), [7, 7])).toBeLessThanOrEqual(4 * imageBytes + few)
  })

  it('are in the metrics', async () => {
    await serve([0])
    const metrics = new ServingMetrics(() => [])
    await askHttp(await http(), [0])
    const [, value] = /^gantry_model_server_copied_bytes_total (\d+)$/m.exec(await metrics.text()) ?? []
    expect(Number(value)).toBe(copiedBytes())
  })
})
