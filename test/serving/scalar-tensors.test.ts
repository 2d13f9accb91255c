import { describe, expect, it } from 'vitest'
import { buildOnnx, type TensorSpec } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { bytesInput, floatsOf, fp32Input, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'

const scalar = (name: string, type: TensorSpec['type'] = 'float32'): TensorSpec => ({ name, type, shape: [] })
const identity = buildOnnx({
  inputs: [scalar('S')],
  outputs: [scalar('R')],
  nodes: [{ op: 'Identity', inputs: ['S'], outputs: ['R'] }],
})
const text = buildOnnx({
  inputs: [scalar('S', 'string')],
  outputs: [scalar('R', 'string')],
  nodes: [{ op: 'Identity', inputs: ['S'], outputs: ['R'] }],
})
/** The sum of a vector times a number, which is a scalar. */
const sum = buildOnnx({
  inputs: [{ name: 'V', type: 'float32', shape: ['n'] }, scalar('S')],
  outputs: [scalar('R')],
  nodes: [
    { op: 'ReduceSum', inputs: ['V'], outputs: ['total'], attributes: { keepdims: 0 } },
    { op: 'Mul', inputs: ['total', 'S'], outputs: ['R'] },
  ],
})
const io = (dims: string, more = '') =>
  `max_batch_size: 0 input { name: "S" data_type: TYPE_FP32 dims: ${dims} ${more} } output { name: "R" data_type: TYPE_FP32 dims: ${dims} ${more} }`

async function serve(onnx: Uint8Array, config?: string): Promise<ServedRepository> {
  const dir = tempDir()
  addModel(dir, 'm', { onnx, ...(config === undefined ? {} : { config }) })
  return ServedRepository.of(dir)
}

describe('scalars of an ONNX model', () => {
  it.each([
    ['without a configuration', undefined, [1]],
    ['by dims: [1]', io('[ 1 ]'), [1]],
    ['by dims: [1, 1]', io('[ 1, 1 ]'), [1, 1]],
    ['by a reshape', io('[ 1, 1 ]', 'reshape { shape: [ 1 ] }'), [1, 1]],
  ])('have a dimension for clients: %s', async (_, config, shape) => {
    const served = await serve(identity, config)
    const metadata = await served.grpc.call('ModelMetadata', { name: 'm' })
    expect(metadata).toMatchObject({
      inputs: [{ name: 'S', shape }],
      outputs: [{ name: 'R', shape }],
    })
    for (const given of [shape, []])
      for (const heard of await served.both('m', [fp32Input('S', given, [2.5])]))
        expect(floatsOf(heard)).toEqual([['R', shape, [2.5]]])
    const reply = await served.json('m', { inputs: [{ name: 'S', datatype: 'FP32', shape, data: [2.5] }] })
    expect(reply.json).toMatchObject({ outputs: [{ name: 'R', shape, data: [2.5] }] })
    for (const heard of await served.both('m', [fp32Input('S', [2], [1, 2])]))
      expect(heard).toMatchObject({
        error: expect.stringContaining(`Expected [${shape.join(',')}], got [2]`) as string,
      })
  })

  it('are told so that the configuration can be sent back', async () => {
    const dir = tempDir()
    addModel(dir, 'm', { onnx: identity })
    const served = await ServedRepository.of(dir, { control: 'explicit' })
    const config = await (await fetch(`${served.url}/v2/models/m/config`)).text()
    expect(JSON.parse(config)).toMatchObject({ input: [{ dims: [1] }], output: [{ dims: [1] }] })
    const body = JSON.stringify({ parameters: { config } })
    const reply = await fetch(`${served.url}/v2/repository/models/m/load`, { method: 'POST', body })
    expect([reply.status, await reply.text()]).toEqual([200, ''])
    expect(floatsOf((await served.both('m', [fp32Input('S', [1], [1])]))[0])).toEqual([['R', [1], [1]]])
  })

  it('may be text, or one of several tensors', async () => {
    const texts = await serve(text)
    const [heard] = await texts.both('m', [bytesInput('S', [1], [Buffer.from('hello')])])
    expect(heard).toMatchObject({
      outputs: [{ name: 'R', shape: [1], data: Buffer.from('\x05\0\0\0hello') }],
    })
    const sums = await serve(sum)
    for (const answer of await sums.both('m', [fp32Input('V', [3], [1, 2, 3]), fp32Input('S', [1], [2])]))
      expect(floatsOf(answer)).toEqual([['R', [1], [12]]])
  })

  it.each([
    ['[ 2 ]', 'R'],
    ['[ -1 ]', 'R'],
  ])('are refused with dims: %s, which they do not have', async (dims) => {
    const served = await serve(identity, io(dims))
    const index = (await served.grpc.call('RepositoryIndex', {})) as { models: { reason: string }[] }
    expect(index.models[0]?.reason).toContain(`input "S" is float32 [] in the model`)
  })
})
