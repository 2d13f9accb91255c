import { expect, it } from 'vitest'
import { fp32, requestOf } from '../support/direct-model.js'
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
