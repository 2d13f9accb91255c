import { describe, expect, it } from 'vitest'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { floatsOf, fp32Input, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'

const two = buildOnnx({
  inputs: [
    { name: 'A', type: 'float32', shape: ['batch', 1] },
    { name: 'C', type: 'float32', shape: ['batch', 1] },
  ],
  outputs: [
    { name: 'B', type: 'float32', shape: ['batch', 1] },
    { name: 'D', type: 'float32', shape: ['batch', 1] },
  ],
  nodes: [
    { op: 'Identity', inputs: ['A'], outputs: ['B'] },
    { op: 'Identity', inputs: ['C'], outputs: ['D'] },
  ],
})
const ensemble = `platform: "ensemble" max_batch_size: 4
input [ { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "C" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "D" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step { model_name: "two"
  input_map { key: "A" value: "A" } input_map { key: "C" value: "C" }
  output_map { key: "B" value: "B" } output_map { key: "D" value: "D" } } }`

async function serve(): Promise<ServedRepository> {
  const dir = tempDir()
  addModel(dir, 'two', { onnx: two })
  addModel(dir, 'ensemble', { config: ensemble })
  return ServedRepository.of(dir)
}

describe.each(['two', 'ensemble'])('tensors of a request to %s', (model) => {
  const a = fp32Input('A', [1, 1], [1])
  const c = fp32Input('C', [1, 1], [2])

  it('are given in the order in which they are asked for', async () => {
    const served = await serve()
    for (const heard of await served.both(model, [a, c], ['D', 'B']))
      expect(floatsOf(heard)).toEqual([
        ['D', [1, 1], [2]],
        ['B', [1, 1], [1]],
      ])
  })

  it('may be asked for once, and given once', async () => {
    const served = await serve()
    const [http, grpc] = await served.both(model, [a, c], ['B', 'D', 'B'])
    const twice = "[request id: <id_unknown>] output 'B' already exists in request"
    expect([http, grpc]).toEqual([
      { status: 400, error: twice },
      { status: 3, error: twice },
    ])
    const [inHttp, inGrpc] = await served.both(model, [a, c, a])
    const given = "[request id: <id_unknown>] input 'A' already exists in request"
    expect([inHttp, inGrpc]).toEqual([
      { status: 400, error: given },
      { status: 3, error: given },
    ])
    const outputs = [{ name: 'B', parameters: { binary_data: true } }, { name: 'B' }]
    const inputs = [a, c].map(({ name, datatype, shape }) => ({ name, datatype, shape, data: [1] }))
    const reply = await served.json(model, { id: 'seven', inputs, outputs })
    expect([reply.status, reply.json]).toEqual([
      400,
      { error: "[request id: seven] output 'B' already exists in request" },
    ])
  })
})

it('a model that nobody knows is not ready, by both protocols', async () => {
  const served = await serve()
  for (const name of ['nosuch', '', 'two/..'])
    expect(await served.grpc.call('ModelReady', { name })).toEqual({ ready: false })
  for (const version of ['2', '99999999999999999999'])
    expect(await served.grpc.call('ModelReady', { name: 'two', version })).toEqual({ ready: false })
  expect(await served.grpc.call('ModelReady', { name: 'two' })).toEqual({ ready: true })
  await expect(served.grpc.call('ModelReady', { name: 'two', version: 'one' })).rejects.toMatchObject({
    code: 3,
  })
  await expect(served.grpc.call('ModelMetadata', { name: 'nosuch' })).rejects.toMatchObject({
    details: "Request for unknown model: 'nosuch' is not found",
  })
  expect((await fetch(`${served.url}/v2/models/nosuch/ready`)).status).toBe(400)
})
