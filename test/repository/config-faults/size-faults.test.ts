import { expect, it } from 'vitest'
import { configFaults, faultText } from '../../../src/repository/config-faults/config-faults.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'

const faultsOf = (text: string) => faultText(configFaults({ ...parseModelConfig(text, 'm'), name: 'm' }))
const input = (dims: string) => `input { name: "x" data_type: TYPE_FP32 dims: [${dims}] }`
const warmUp = (more: string, dims = '4') =>
  `${input(dims)} output { name: "y" data_type: TYPE_FP32 dims: [4] } max_batch_size: 8 model_warmup { name: "w" ${more} inputs { key: "x" value { data_type: TYPE_FP32 dims: [${dims}] zero_data: true } } }`

it.each([
  [
    'instance_group { count: 20000 }',
    /instance_group\.count: model m has 20000 instances; write at most 256/,
  ],
  ['instance_group { count: 200 } instance_group { count: 57 }', /has 257 instances/],
  [
    'instance_group { count: 2 } parameters { key: "intra_op_thread_count" value { string_value: "9999" } }',
    /parameters\["intra_op_thread_count"\]: instances of m with 19998 threads; at most 1024/,
  ],
  [
    'instance_group { count: 2 } sequence_batching { oldest { max_candidate_sequences: 2000000000 } }',
    /sequence_batching.*4000000000 .*at most 65536/,
  ],
  [
    'max_batch_size: 60000 instance_group { count: 2 } sequence_batching { }',
    /sequence batching has 120000 places/,
  ],
  [warmUp('batch_size: 8', '100000000'), /model_warmup\.inputs: warm-ups of m with 3200000000 bytes/],
  [
    `platform: "ensemble" ensemble_scheduling { ${'step { model_name: "letterbox" } '.repeat(129)} }`,
    /ensemble_scheduling\.step: 129 steps/,
  ],
])('S11: a model that asks for too much at its load is refused: %s', (text, fault) => {
  expect(faultsOf(text)).toMatch(fault)
})

it('takes what is large and not too large', () => {
  const text = `instance_group { count: 256 } ${warmUp('count: 10000 batch_size: 8', '1000000')}`
  expect(faultsOf(text)).toBe('')
})
