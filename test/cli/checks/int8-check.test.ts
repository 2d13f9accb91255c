import { expect, it } from 'vitest'
import { checkInt8 } from '../../../src/cli/checks/int8-check.js'
import type { ProviderState } from '../../../src/backends/onnxruntime/provider-look.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { qdqConv } from '../../support/quantised-models.js'
import { tempDir } from '../../support/temp-dir.js'

const zen3 = { architecture: 'x64', flags: new Set(['avx2']) }
const runs = (provider: ProviderState['provider']): ProviderState[] => [
  { provider, state: 'runs', reason: '' },
]
const cpu = runs('cpu')

function repositories(): string[] {
  const [one, two] = [tempDir(), tempDir()]
  addModel(one, 'wide', { onnx: qdqConv().onnx })
  addModel(one, 'narrow', { onnx: qdqConv({ weight: 60 }).onnx })
  addModel(one, 'float', { onnx: redDetector('uint8-nhwc') })
  addModel(one, 'cut', { onnx: qdqConv().onnx.subarray(0, 100) })
  addModel(one, 'broken', { config: 'max_batchsize: 1' })
  addModel(two, 'narrow', { onnx: qdqConv().onnx })
  addModel(two, 'exact', {
    onnx: qdqConv().onnx,
    config: 'parameters { key: "session.x64quantprecision" value { string_value: "1" } }',
  })
  return [one, two]
}

it('warns of each model whose sums would saturate on this processor, and of no other', () => {
  expect(checkInt8(repositories(), cpu, zen3)).toEqual([
    {
      subject: 'model wide',
      state: 'warning',
      detail: expect.stringContaining('results can be wrong on this processor') as string,
      fix: expect.stringContaining('reduce_range') as string,
    },
  ])
})

it('says nothing where the processor adds exactly, models run elsewhere, or there is no repository', () => {
  const vnni = { architecture: 'x64', flags: new Set(['avx2', 'avx512_vnni']) }
  expect(checkInt8(repositories(), cpu, vnni)).toEqual([])
  expect(checkInt8(repositories(), runs('cuda'), zen3)).toEqual([])
  expect(checkInt8(['/nowhere'], cpu, zen3)).toEqual([])
})

it('warns where a GPU was to run the models and does not', () => {
  const fails: ProviderState = { provider: 'cuda', state: 'fails', reason: 'no driver' }
  expect(checkInt8(repositories(), [fails, ...cpu], zen3)).toHaveLength(1)
})
