import { expect, it } from 'vitest'
import ort from '../../../src/backends/onnxruntime/onnxruntime.js'
import { readOnnxFile } from '../../../src/repository/onnx-file.js'
import { withBatch } from '../../../src/tools/transform/batch-dimension.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { modelFile } from '../../support/transformed.js'

const flat = { name: 'shape', shape: [2], data: BigInt64Array.of(1n, 6n) }

/** Made for one: its Reshape says so. */
const single = () =>
  modelFile(
    buildOnnx({
      inputs: [{ name: 'in', type: 'float32', shape: [1, 2, 3] }],
      outputs: [{ name: 'out', type: 'float32', shape: [1, 6] }],
      nodes: [
        { op: 'Relu', inputs: ['in'], outputs: ['a'] },
        { op: 'Reshape', inputs: ['a', 'shape'], outputs: ['out'] },
      ],
      constants: [flat],
    }),
  )

async function run(bytes: Uint8Array, batch: number): Promise<readonly number[]> {
  const session = await ort.InferenceSession.create(bytes)
  const data = Float32Array.from({ length: 6 * batch }, (_, at) => at)
  const { out } = await session.run({ in: new ort.Tensor('float32', data, [batch, 2, 3]) })
  await session.release()
  expect([...(out!.data as Float32Array)]).toEqual([...data])
  return out!.dims
}

it('frees the batch, also where a Reshape was made for one', async () => {
  const bytes = withBatch(single(), 'free')
  expect(await run(bytes, 1)).toEqual([1, 6])
  expect(await run(bytes, 4)).toEqual([4, 6])
})

it('fixes the batch', async () => {
  const path = modelFile(withBatch(single(), 4))
  expect(readOnnxFile(path).inputs[0]!.shape).toEqual([4, 2, 3])
  const free = modelFile(withBatch(path, 'free'))
  expect(readOnnxFile(free).outputs[0]!.shape).toEqual(['batch', 6])
})

it('names the tensor that does not begin with the batch', () => {
  const path = modelFile(
    buildOnnx({
      inputs: [{ name: 'in', type: 'float32', shape: [1, 3] }],
      outputs: [{ name: 'turned', type: 'float32', shape: [3, 1] }],
      nodes: [{ op: 'Transpose', inputs: ['in'], outputs: ['turned'], attributes: { perm: [1, 0] } }],
    }),
  )
  expect(() => withBatch(path, 'free')).toThrow('"turned" is [3, 1], and input "in" begins with 1')
})
