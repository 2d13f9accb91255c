import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkMemoryLimit } from '../../../src/backends/onnxruntime/memory-limit.js'
import { externalBytes } from '../../../src/repository/external-data.js'
import { buildOnnx, type Constant } from '../../support/onnx-builder.js'
import { tempDir } from '../../support/temp-dir.js'

const limited = (bytes: number) => ({ providerOptions: { cuda: { gpu_mem_limit: String(bytes) } } })

it('a memory limit is refused that not even the file of the model fits into', async () => {
  const path = join(tempDir(), 'model.onnx')
  writeFileSync(path, Buffer.alloc(5_000))
  await expect(checkMemoryLimit(path, limited(4_999), 'cuda')).rejects.toThrow(
    'gpu_mem_limit of cuda is 4999 bytes, which is under what the model needs: its file alone has 5000',
  )
  await checkMemoryLimit(path, limited(5_000), 'cuda')
  await checkMemoryLimit(path, limited(1), 'cpu')
  await checkMemoryLimit(path, {}, 'cuda')
  // What is wrong with it is told by whoever opens it.
  await checkMemoryLimit(join(path, '..', 'nowhere'), limited(1), 'cuda')
})

/** A model whose weights lie beside it. */
function withExternalData(places: readonly Pick<Constant, 'location' | 'offset'>[]): string {
  const dir = tempDir()
  writeFileSync(join(dir, 'weights.bin'), Buffer.alloc(10_000))
  const constants = places.map((place, index) => ({
    name: `w${index}`,
    shape: [256],
    data: new Float32Array(256),
    ...place,
  }))
  const path = join(dir, 'model.onnx')
  const tensor = { type: 'float32', shape: [256] } as const
  const model = buildOnnx({
    inputs: [{ name: 'in', ...tensor }],
    outputs: [{ name: 'out', ...tensor }],
    nodes: [{ op: 'Add', inputs: ['in', 'w0'], outputs: ['out'] }],
    constants,
  })
  writeFileSync(path, model)
  return path
}

it('counts weights that lie in files beside the model, each place once', () => {
  const location = 'weights.bin'
  expect(
    externalBytes(
      withExternalData([
        { location, offset: 0 },
        { location, offset: 1_024 },
      ]),
    ),
  ).toBe(2_048)
  expect(
    externalBytes(
      withExternalData([
        { location, offset: 64 },
        { location, offset: 64 },
      ]),
    ),
  ).toBe(1_024)
  expect(externalBytes(withExternalData([{ location }]))).toBe(10_000)
  // Not of the model's folder, and not there.
  expect(externalBytes(withExternalData([{ location: '/etc/hostname' }, { location: '../a' }]))).toBe(0)
  expect(externalBytes(withExternalData([{ location: 'absent.bin' }]))).toBe(0)
  expect(externalBytes(withExternalData([{}]))).toBe(0)
})

it('a memory limit is refused that the data beside the model does not fit into', async () => {
  const path = withExternalData([{ location: 'weights.bin' }])
  await expect(checkMemoryLimit(path, limited(9_000), 'cuda')).rejects.toThrow(
    /its file and the data beside it have 10\d{3}$/,
  )
  await checkMemoryLimit(path, limited(11_000), 'cuda')
})
