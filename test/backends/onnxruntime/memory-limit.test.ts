import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkMemoryLimit } from '../../../src/backends/onnxruntime/memory-limit.js'
import { tempDir } from '../../support/temp-dir.js'

it('a memory limit is refused that not even the file of the model fits into', () => {
  const path = join(tempDir(), 'model.onnx')
  writeFileSync(path, Buffer.alloc(5_000))
  const limited = (bytes: number) => ({ providerOptions: { cuda: { gpu_mem_limit: String(bytes) } } })
  expect(() => checkMemoryLimit(path, limited(4_999), 'cuda')).toThrow(
    'gpu_mem_limit of cuda is 4999 bytes, which is under what the model needs: its file alone has 5000',
  )
  checkMemoryLimit(path, limited(5_000), 'cuda')
  checkMemoryLimit(path, limited(1), 'cpu')
  checkMemoryLimit(path, {}, 'cuda')
  // What is wrong with it is told by whoever opens it.
  checkMemoryLimit(join(path, 'nowhere'), limited(1), 'cuda')
})
