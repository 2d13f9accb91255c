import { describe, expect, it } from 'vitest'
import { parseModelConfig, modelConfigText } from '../../../src/repository/model-config-text.js'
import { configured } from '../../../src/tools/optimize/configured.js'
import { plainBaseline } from '../../../src/tools/optimize/run-optimize.js'
import type { Configuration } from '../../../src/tools/optimize/search-space.js'

const text = `
  name: "detector"
  max_batch_size: 16
  dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 5000 }
  instance_group [ { count: 7 kind: KIND_GPU gpus: [ 1 ] } ]
  parameters { key: "intra_op_thread_count" value { string_value: "3" } }
  parameters { key: "gantry.head" value { string_value: "yolox" } }
`
const config = parseModelConfig(text, 'config.pbtxt')
const best: Configuration = {
  form: 'int8',
  provider: 'cpu',
  intraOpThreads: 2,
  spinning: false,
  graph: 'extended',
  arena: false,
  parallel: true,
  instances: 3,
  maxBatch: 4,
  queueDelayUs: 2_000,
}

describe('a configuration as config.pbtxt', () => {
  const written = configured(config, best)

  it('has its instances, batches and session options, and nothing of what they replace', () => {
    expect(written).toMatchObject({
      max_batch_size: 4,
      instance_group: [{ count: 3, kind: 'KIND_CPU', gpus: [] }],
      dynamic_batching: { preferred_batch_size: [], max_queue_delay_microseconds: 2_000 },
      optimization: { graph: { level: 1 } },
      parameters: {
        intra_op_thread_count: { string_value: '2' },
        inter_op_thread_count: { string_value: '2' },
        execution_mode: { string_value: '1' },
        enable_mem_arena: { string_value: '0' },
        'session.intra_op.allow_spinning': { string_value: '0' },
        'gantry.head': { string_value: 'yolox' },
      },
    })
  })

  it('is read back as it was written', () => {
    const again = parseModelConfig(modelConfigText(written), 'config.pbtxt')
    expect(again.max_batch_size).toBe(4)
    expect(again.parameters).toEqual(written.parameters)
    expect(again.instance_group).toMatchObject([{ count: 3, kind: 'KIND_CPU' }])
  })

  it('batches nothing where a batch is one request', () => {
    const plain = configured(config, { ...best, maxBatch: 1, queueDelayUs: 0, parallel: false })
    expect(plain).not.toHaveProperty('dynamic_batching')
    expect(plain.max_batch_size).toBe(1)
    expect(plain.parameters).not.toHaveProperty('execution_mode')
  })

  it('leaves a model without a batch dimension without one', () => {
    const { max_batch_size: _, dynamic_batching: __, ...without } = config
    const plain = configured(without, { ...best, maxBatch: 1 })
    expect(plain).not.toHaveProperty('max_batch_size')
    expect(plain).not.toHaveProperty('dynamic_batching')
  })

  it('says nothing of the CPU on a GPU', () => {
    const onGpu = configured(config, { ...best, provider: 'cuda' })
    expect(onGpu.instance_group).toMatchObject([{ kind: 'KIND_GPU' }])
    expect(onGpu.parameters).not.toHaveProperty('intra_op_thread_count')
  })

  it('of the baseline is what ONNX Runtime does by itself', () => {
    expect(configured(config, plainBaseline(8))).toMatchObject({
      max_batch_size: 1,
      parameters: {
        intra_op_thread_count: { string_value: '8' },
        'session.intra_op.allow_spinning': { string_value: '1' },
        enable_mem_arena: { string_value: '1' },
      },
    })
  })
})
