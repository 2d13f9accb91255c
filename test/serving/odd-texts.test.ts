import { beforeEach, describe, expect, it } from 'vitest'
import { buildOnnx } from '../support/onnx-builder.js'
import { addJsModel, addModel } from '../support/onnx-models.js'
import { bytesInput, type Heard, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'

const tensors = `input { name: "A" data_type: TYPE_STRING dims: [ -1 ] } output { name: "B" data_type: TYPE_STRING dims: [ -1 ] }`
const identity = buildOnnx({
  inputs: [{ name: 'A', type: 'string', shape: ['n'] }],
  outputs: [{ name: 'B', type: 'string', shape: ['n'] }],
  nodes: [{ op: 'Identity', inputs: ['A'], outputs: ['B'] }],
})
const giver = buildOnnx({
  inputs: [{ name: 'A', type: 'float32', shape: [1] }],
  outputs: [
    { name: 'B', type: 'string', shape: [2] },
    { name: 'C', type: 'float32', shape: [1] },
  ],
  constants: [
    { name: 'texts', shape: [2], data: new Uint8Array(0), strings: [Buffer.from('ab\0cd'), Buffer.from('')] },
  ],
  nodes: [
    { op: 'Identity', inputs: ['texts'], outputs: ['B'] },
    { op: 'Identity', inputs: ['A'], outputs: ['C'] },
  ],
})

const notUtf8 = [Buffer.from('ok'), Buffer.from([0xff, 0xfe, 0x41])]
const withNul = [Buffer.from('ok'), Buffer.from('ab\0cd')]

const wire = (elements: readonly Uint8Array[]): Buffer => Buffer.from(bytesInput('', [], elements).data)

function dataOf(heard: Heard): Buffer | undefined {
  return 'outputs' in heard ? heard.outputs[0]?.data : undefined
}

let served: ServedRepository

beforeEach(async () => {
  const dir = tempDir()
  addModel(dir, 'onnx', { onnx: identity, config: `max_batch_size: 0 ${tensors}` })
  addModel(dir, 'giver', { onnx: giver, config: 'max_batch_size: 0' })
  addJsModel(dir, 'js', tensors, 'export default () => ({ execute: ({ inputs }) => ({ B: inputs.A }) })')
  served = await ServedRepository.of(dir, { allowJs: true })
})

describe('BYTES that are not UTF-8', () => {
  it('R69: stay as they are in binary and by gRPC', async () => {
    for (const heard of await served.both('js', [bytesInput('A', [2], notUtf8)]))
      expect(dataOf(heard)).toEqual(wire(notUtf8))
  })

  it.each([2, 200_000])(
    'R69: are refused in an answer in JSON, which cannot carry them: %d elements',
    async (count) => {
      const elements = Array.from({ length: count }, (_, index) => notUtf8[index === count - 1 ? 1 : 0]!)
      const [heard] = await served.both('js', [bytesInput('A', [count], elements)])
      expect(dataOf(heard)?.byteLength).toBe(wire(elements).byteLength)
      const header = JSON.stringify({
        inputs: [
          {
            name: 'A',
            datatype: 'BYTES',
            shape: [count],
            parameters: { binary_data_size: wire(elements).byteLength },
          },
        ],
      })
      const response = await fetch(`${served.url}/v2/models/js/infer`, {
        method: 'POST',
        headers: { 'inference-header-content-length': String(header.length) },
        body: Buffer.concat([Buffer.from(header), wire(elements)]),
      })
      expect([response.status, await response.json()]).toEqual([
        400,
        {
          error:
            "output 'B' has an element that is not UTF-8, which JSON cannot carry. Please use the binary data format for output",
        },
      ])
    },
  )

  it('R69: are refused by name for an ONNX model, which takes text alone', async () => {
    for (const heard of await served.both('onnx', [bytesInput('A', [2], notUtf8)]))
      expect(heard).toMatchObject({ error: "input 'A' has an element that is not UTF-8" })
  })

  it.each(['"\\ud800"', '"a\\udc00b"', '"\\ud83d\\ud83d"'])(
    'R69: are refused in JSON where they are half of a pair: %s',
    async (text) => {
      const body = `{"inputs":[{"name":"A","datatype":"BYTES","shape":[1],"data":[${text}]}]}`
      const response = await fetch(`${served.url}/v2/models/js/infer`, { method: 'POST', body })
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('surrogate pair'),
      ])
    },
  )
})

describe('a NUL in a string', () => {
  const refusal = "input 'A' has an element that has a NUL, where ONNX Runtime would cut it"

  it('R69: is refused by name for an ONNX model, by every protocol', async () => {
    for (const heard of await served.both('onnx', [bytesInput('A', [2], withNul)]))
      expect(heard).toMatchObject({ error: refusal })
    const input = { name: 'A', datatype: 'BYTES', shape: [2], data: ['ok', 'ab\0cd'] }
    const reply = await served.json('onnx', { inputs: [input] })
    expect([reply.status, reply.json]).toEqual([400, { error: refusal }])
    const typed = served.grpc.call('ModelInfer', {
      model_name: 'onnx',
      inputs: [{ name: 'A', datatype: 'BYTES', shape: [2], contents: { bytes_contents: withNul } }],
    })
    await expect(typed).rejects.toMatchObject({ code: 3, details: refusal })
  })

  it.each([
    ['at the start', ['\0']],
    ['at the end', ['a\0']],
    ['in a long one', [`${'x'.repeat(100_000)}\0`]],
    ['in the last of many', [...Array<string>(50_000).fill('word'), 'wo\0rd']],
  ])('R69: is found %s', async (_, texts) => {
    const elements = texts.map((text) => Buffer.from(text))
    const [heard] = await served.both('onnx', [bytesInput('A', [texts.length], elements)])
    expect(heard).toMatchObject({ status: 400, error: refusal })
  })

  it('R69: passes through other models, and out of an ONNX model, uncut', async () => {
    for (const heard of await served.both('js', [bytesInput('A', [2], withNul)]))
      expect(dataOf(heard)).toEqual(wire(withNul))
    const one = { name: 'A', datatype: 'FP32', shape: [1], data: [1] }
    const reply = await served.json('giver', { inputs: [one] })
    expect(reply.json).toMatchObject({ outputs: [{ name: 'B', data: ['ab\0cd', ''] }, { name: 'C' }] })
  })

  it.each([
    ['words', ['', 'helmet', 'Größe', '\u{1f600}']],
    ['lengths that have zeros', ['x'.repeat(256), 'x'.repeat(65_536), '']],
  ])('R69: is not seen where there is none: %s', async (_, texts) => {
    const elements = texts.map((text) => Buffer.from(text))
    for (const heard of await served.both('onnx', [bytesInput('A', [texts.length], elements)]))
      expect(dataOf(heard)).toEqual(wire(elements))
  })
})
