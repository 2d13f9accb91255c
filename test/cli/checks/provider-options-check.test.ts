import { expect, it } from 'vitest'
import { checkProviderOptions } from '../../../src/cli/checks/provider-options-check.js'
import { inferenceSchema } from '../../../src/config/inference.js'

const inference = inferenceSchema.parse({ cuda: { use_tf32: false } })
const onCuda = [{ provider: 'cuda', state: 'runs', reason: '' }] as const
const onCpu = [
  { provider: 'cuda', state: 'not installed', reason: 'no library' },
  { provider: 'cpu', state: 'runs', reason: '' },
] as const

it('says that options cannot be followed without koffi, where they have somewhere to go', () => {
  expect(checkProviderOptions(inference, onCuda, false)).toEqual([
    {
      subject: 'options',
      state: 'failed',
      detail: 'use_tf32 of cuda needs the package koffi, which is not installed: no model is loaded on cuda',
      fix: '`npm install koffi` in the folder of Gantry, or leave the option out',
    },
  ])
  expect(checkProviderOptions(inference, onCpu, false)).toEqual([])
  expect(checkProviderOptions(inferenceSchema.parse({}), onCuda, false)).toEqual([])
  expect(checkProviderOptions(inference, onCuda)).toEqual([])
})
