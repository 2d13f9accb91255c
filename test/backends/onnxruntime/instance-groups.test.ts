import { describe, expect, it } from 'vitest'
import { completeGroups, placements } from '../../../src/backends/onnxruntime/instance-groups.js'
import type { ExecutionProvider } from '../../../src/config/inference.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { nothingIsMissing } from '../../support/simulated-gpus.js'

/** Where the instances of a model are, by provider first tried and GPU. */
function places(
  text: string,
  devices: readonly number[],
  providers: readonly ExecutionProvider[] = ['cuda', 'cpu'],
  missing: (provider: ExecutionProvider) => string | undefined = nothingIsMissing,
): string[] {
  const { instance_group } = parseModelConfig(text, 'config.pbtxt')
  const groups = completeGroups(instance_group, 'm', { providers, devices, missing })
  return placements(groups, providers).map(({ providers: [first], deviceId }) =>
    first === 'cpu' ? 'cpu' : `${first} ${deviceId}`,
  )
}

describe('instances of a model', () => {
  it.each([
    ['a model without groups', '', ['cuda 0', 'cuda 1']],
    ['KIND_AUTO', 'instance_group { count: 2 }', ['cuda 0', 'cuda 0', 'cuda 1', 'cuda 1']],
    ['KIND_GPU', 'instance_group { kind: KIND_GPU }', ['cuda 0', 'cuda 1']],
    ['KIND_GPU that names one', 'instance_group { kind: KIND_GPU gpus: [1] count: 2 }', ['cuda 1', 'cuda 1']],
    ['one that is not among those in use', 'instance_group { gpus: [3] }', ['cuda 3']],
    ['KIND_CPU', 'instance_group { kind: KIND_CPU count: 1 }', ['cpu']],
    [
      'several groups',
      'instance_group [ { gpus: [0] count: 2 }, { kind: KIND_GPU gpus: [1] }, { kind: KIND_CPU count: 1 } ]',
      ['cuda 0', 'cuda 0', 'cuda 1', 'cpu'],
    ],
  ])('are on all GPUs in use that fit: %s', (_, text, expected) => {
    expect(places(text, [0, 1])).toEqual(expected)
  })

  it('are on the GPU that is in use, where that is one', () => {
    expect(places('', [2])).toEqual(['cuda 2'])
  })

  it('name no GPU where none is taken by its number', () => {
    expect(places('instance_group { count: 2 }', [0, 1], ['webgpu', 'cpu'])).toEqual(['webgpu 0', 'webgpu 0'])
    const onlyCuda = (provider: ExecutionProvider) => (provider === 'cuda' ? 'not installed' : undefined)
    expect(places('', [0, 1], ['cuda', 'cpu'], onlyCuda)).toEqual(['cpu', 'cpu'])
    expect(places('', [0, 1], ['cuda', 'webgpu', 'cpu'], onlyCuda)).toHaveLength(1)
  })
})
