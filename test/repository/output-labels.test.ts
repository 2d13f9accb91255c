import { expect, it } from 'vitest'
import type { LocalModelServer } from '../../src/serving/local-model-server.js'
import { fp32, requestOf } from '../support/direct-model.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, namesMetadata } from '../support/onnx-models.js'
import { serveRepository } from '../support/real-repository.js'
import { tempDir } from '../support/temp-dir.js'

const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 2] }) as const
const scores = (metadata?: Record<string, string>) =>
  buildOnnx({
    inputs: [tensor('x')],
    outputs: [tensor('y')],
    nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
    ...(metadata === undefined ? {} : { metadata }),
  })
const named = scores(namesMetadata(['from', 'metadata']))
const ensemble = `platform: "ensemble" max_batch_size: 1
  input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }
  ensemble_scheduling { step { model_name: "m" model_version: -1
    input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }`

async function best(server: LocalModelServer, model: string): Promise<string> {
  const asked = requestOf([fp32('x', [1, 2], [0.25, 0.75])], {
    model,
    outputs: [{ name: 'y', classification: 1 }],
  })
  const { outputs } = await server.infer(asked)
  return Buffer.from(outputs[0]!.data).subarray(4).toString()
}

it.each([
  [
    'label_filename',
    {
      onnx: named,
      config: 'output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" }',
      labels: 'a\nb',
    },
    '0.750000:1:b',
  ],
  ['labels.txt, where no output names a file', { onnx: named, labels: 'a\nb' }, '0.750000:1:b'],
  ['the metadata of the model, where there is no file', { onnx: named }, '0.750000:1:metadata'],
  [
    'a map in the metadata that begins with 1',
    { onnx: scores({ names: "{1: 'a', 2: 'b'}" }) },
    '0.750000:1:b',
  ],
  ['nothing', { onnx: scores() }, '0.750000:1'],
])('classes of a request have their names from %s', async (_, files, expected) => {
  const repository = tempDir()
  addModel(repository, 'm', {
    ...files,
    config: `max_batch_size: 4 ${'config' in files ? files.config : ''}`,
  })
  addModel(repository, 'e', { config: ensemble })
  const server = await serveRepository(repository)
  expect(await best(server, 'm')).toBe(expected)
  expect(await best(server, 'e')).toBe(expected)
})

it('an ensemble with a labels.txt of its own has its names from there', async () => {
  const repository = tempDir()
  addModel(repository, 'm', { onnx: named, config: 'max_batch_size: 4' })
  addModel(repository, 'e', { config: ensemble, labels: 'no\nyes' })
  expect(await best(await serveRepository(repository), 'e')).toBe('0.750000:1:yes')
})
