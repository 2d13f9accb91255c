import { describe, expect, it } from 'vitest'
import { fp32, requestOf } from '../support/direct-model.js'
import { echoOnnx } from '../support/model-repository.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { serveRepository } from '../support/real-repository.js'
import { tempDir } from '../support/temp-dir.js'

it('S11: refuses outputs that are larger than a response may be', async () => {
  const tensor = (name: string) => ({ name, type: 'float32', shape: ['n'] }) as const
  const repository = tempDir()
  addModel(repository, 'same', {
    config: 'max_batch_size: 0 input { name: "x" data_type: TYPE_FP32 dims: [-1] }',
    onnx: buildOnnx({
      inputs: [tensor('x')],
      outputs: [tensor('y'), tensor('z')],
      nodes: ['y', 'z'].map((output) => ({ op: 'Identity', inputs: ['x'], outputs: [output] })),
    }),
  })
  const server = await serveRepository(repository, { maxResponseBytes: 400 })
  const asked = (elements: number) =>
    server.infer(requestOf([fp32('x', [elements], Array<number>(elements).fill(1))], { model: 'same' }))
  expect((await asked(50)).outputs).toHaveLength(2)
  await expect(asked(51)).rejects.toMatchObject({
    status: 'INVALID_ARG',
    message:
      "outputs of model 'same' have 408 bytes, more than the 400 of a response (modelServer.maxResponseBytes)",
  })
})

describe('statistics of what is not ready', () => {
  it.each([
    ['a version that is not there', 'same', '9', "requested model version is not available for model 'same'"],
    ['a version that is unloaded', 'off', '1', "requested model version is not available for model 'off'"],
    ['a model that is unloaded', 'off', '', "requested model 'off' is not available"],
    ['a name that was never known', 'nobody', '', "Request for unknown model: 'nobody' is not found"],
    ['a version of such a name', 'nobody', '1', "Request for unknown model: 'nobody' is not found"],
  ])('are refused in the words of Triton: %s', async (_, name, version, message) => {
    const repository = tempDir()
    for (const model of ['same', 'off'])
      addModel(repository, model, { onnx: echoOnnx('float32', ['batch', 3]) })
    const server = await serveRepository(repository, { control: 'explicit' })
    await server.unload('off', false)
    expect(() => server.statistics(name, version)).toThrow(
      expect.objectContaining({ status: 'INVALID_ARG', message }),
    )
    expect(server.statistics('same', '1')).toHaveLength(1)
  })
})
