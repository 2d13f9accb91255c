import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { knownBackend, checkSupported } from '../../src/repository/supported-config.js'

const config = (text: string) => parseModelConfig(text, 'c')

describe('checkSupported', () => {
  it.each([
    ['sequence_batching { }', 'sequence_batching'],
    ['batch_input { kind: BATCH_ELEMENT_COUNT }', 'batch_input'],
    ['input { name: "a" data_type: TYPE_FP32 dims: 3 reshape { shape: [3, 1] } }', 'reshape'],
    ['output { name: "a" is_shape_tensor: true }', 'is_shape_tensor'],
    ['input { name: "a" allow_ragged_batch: true }', 'allow_ragged_batch'],
    ['model_operations { op_library_filename: "ops.so" }', 'op_library_filename'],
    ['model_transaction_policy { decoupled: true }', 'decoupled'],
    ['model_repository_agents { agents { name: "checksum" } }', 'model_repository_agents'],
  ])('refuses %s by name', (text, field) => {
    expect(() => checkSupported(config(text), 'm/config.pbtxt')).toThrow(field)
  })

  it.each([
    ['optimization { cuda { busy_wait_events: true } }', 'optimization.cuda'],
    [
      'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
      'execution_accelerators',
    ],
    ['response_cache { enable: true }', 'response_cache'],
    ['dynamic_batching { max_queue_delay_microseconds: 100 }', 'dynamic_batching'],
    ['dynamic_batching { preferred_batch_size: 4 }', 'dynamic_batching'],
    ['parameters { key: "memory.enable_more" value { string_value: "2" } }', 'ONNX Runtime backend'],
    ['instance_group { rate_limiter { priority: 2 } }', 'rate_limiter'],
  ])('says that %s has no effect', (text, field) => {
    expect(checkSupported(config(text), 'c')).toEqual([expect.stringContaining(field)])
  })

  it.each([
    'parameters { key: "session.x64quantprecision" value { string_value: "1" } }',
    'parameters { key: "intra_op_thread_count" value { string_value: "2" } }',
    'parameters { key: "enable_mem_arena" value { string_value: "0" } }',
    'parameters { key: "gpu_mem_limit" value { string_value: "4294967296" } }',
    'parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "gpu:0" } }',
    'optimization { cuda { graphs: true } }',
    'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
  ])('has nothing to say of %s, which everybody follows', (text) => {
    for (const audience of ['cameras', 'server'] as const)
      expect(checkSupported(config(text), 'c', audience)).toEqual([])
  })

  it.each([
    'sequence_batching { direct { } }',
    'input { name: "a" data_type: TYPE_FP32 dims: 3 reshape { shape: [3, 1] } }',
    'response_cache { enable: true }',
    'model_warmup { name: "w" batch_size: 1 }',
    'dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 100 }',
    'instance_group { gpus: 1 }',
    'metric_tags { key: "site" value: "a" }',
  ])('lets the model server follow %s', (text) => {
    expect(checkSupported(config(text), 'c', 'server')).toEqual([])
  })

  it('refuses a parameter of its own that it does not know', () => {
    const text = 'parameters { key: "gantry.haed" value { string_value: "yolov8" } }'
    expect(() => checkSupported(config(text), 'm/config.pbtxt')).toThrow(
      'parameter "gantry.haed" is not known',
    )
  })

  it('is silent about what is used or means nothing', () => {
    expect(checkSupported(config('dynamic_batching { } parameters { key: "own" }'), 'c')).toEqual([])
    expect(
      checkSupported(config('max_batch_size: 4 model_transaction_policy { decoupled: false }'), 'c'),
    ).toEqual([])
  })
})

describe('knownBackend', () => {
  it.each(['platform: "tensorrt_plan"', 'backend: "python"'])('refuses %s for cameras', (text) => {
    expect(() => knownBackend(config(text), 'm/config.pbtxt')).toThrow('is not supported')
  })

  it.each(['', 'platform: "ensemble"', 'backend: "js"'])('takes "%s"', (text) => {
    expect(() => knownBackend(config(text), 'c')).not.toThrow()
  })
})
