import { describe, expect, it } from 'vitest'
import { ModelConfigError } from '../../../src/repository/errors.js'
import { emptyModelConfig } from '../../../src/repository/model-config.js'
import { parseModelConfigJson } from '../../../src/repository/model-config-json.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { checkCompleted, checkSupported } from '../../../src/repository/supported-config.js'
import { accepted, alsoRefused, tritonRefuses } from '../../support/configuration-forms.js'

const named = (text: string, name: string) => ({ ...parseModelConfig(text, 'config.pbtxt'), name })

function refusal(check: () => unknown): ModelConfigError {
  try {
    check()
  } catch (error) {
    if (error instanceof ModelConfigError) return error
    throw error
  }
  throw new Error('it was accepted')
}

const refusedForms = [...tritonRefuses, ...alsoRefused]

describe('a configuration that cannot mean what it says', () => {
  it('is each of the 58 that Triton refuses, but for the one that depends on the GPUs of the machine', () => {
    expect(tritonRefuses).toHaveLength(57)
    expect(new Set(refusedForms.map(({ name }) => name)).size).toBe(refusedForms.length)
  })

  it.each(refusedForms)('R27: $name is refused by field, value and fix', ({ name, text, field, words }) => {
    const { message, hint } = refusal(() => checkSupported(named(text, name), 'config.pbtxt', 'server'))
    expect(message).toContain(field)
    expect(message).toContain(words)
    expect(hint).not.toBe('')
  })

  // JSON has no such number.
  const inJson = refusedForms.filter(({ text }) => !text.includes('nan'))
  it.each(inJson)('$name is refused as JSON too', ({ name, text, words }) => {
    const json = JSON.stringify(parseModelConfig(text, 'config.pbtxt'))
    const config = { ...parseModelConfigJson(json, 'request'), name }
    expect(refusal(() => checkSupported(config, 'request', 'server')).message).toContain(words)
  })

  it.each(refusedForms)('$name is refused for cameras too', ({ name, text }) => {
    expect(refusal(() => checkSupported(named(text, name), 'config.pbtxt', 'cameras')).message).toContain(
      'config.pbtxt',
    )
  })

  it('is told with everything that is wrong with it', () => {
    const text =
      'max_batch_size: -1 input { name: "in" dims: 0 } output { name: "out" data_type: TYPE_FP32 dims: [1, 3, 2] reshape { shape: 3 } } batch_input { }'
    expect(refusal(() => checkSupported(named(text, 'm'), 'm/config.pbtxt', 'server')).message).toBe(
      "m/config.pbtxt: max_batch_size: 'max_batch_size' must be non-negative value for m: it is -1; write 0 for a model without a batch dimension, else the largest batch. " +
        "input[0].data_type: model input 'in' must specify 'data_type' for m; write its type, such as TYPE_FP32. " +
        "input[0].dims: model input 'in' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m: dims are [0]; write -1 where the size may vary. " +
        "output[0].reshape.shape: model output 'out' has different size for dims and reshape for m: reshape [3] has 3 elements, dims [1, 3, 2] have 6 elements; give both the same number of elements. " +
        'It asks for what is not supported: batch_input: inputs computed from a batch are not supported',
    )
  })
})

describe('a configuration close to those', () => {
  it.each(accepted)('$name is accepted, without a warning', ({ name, text }) => {
    expect(checkSupported(named(text, name), 'config.pbtxt', 'server')).toEqual([])
  })

  it('is one whose batch size comes from the model file', () => {
    const config = named('dynamic_batching { preferred_batch_size: [4, 8] }', 'm')
    expect(checkSupported(config, 'config.pbtxt', 'server')).toEqual([])
    expect(() => checkCompleted({ ...config, max_batch_size: 8 }, 'm')).not.toThrow()
    expect(() => checkCompleted({ ...config, max_batch_size: 4 }, 'm')).toThrow(
      'm: dynamic_batching.preferred_batch_size: dynamic batching preferred size must be <= max batch size for m: it is [4, 8]; write at most max_batch_size, 4',
    )
  })

  it.each([
    [
      'dynamic_batching { priority_queue_policy { key: 2 value { max_queue_size: 1 } } }',
      'priority_levels has no effect',
    ],
    [
      'dynamic_batching { default_queue_policy { allow_timeout_override: true } }',
      'without default_timeout_microseconds has no effect',
    ],
    [
      'dynamic_batching { priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { timeout_action: DELAY } } }',
      'without default_timeout_microseconds has no effect',
    ],
    [
      'max_batch_size: 0 dynamic_batching { max_queue_delay_microseconds: 1 }',
      'max_batch_size 0 has no effect',
    ],
    [
      'sequence_batching { direct { minimum_slot_utilization: 1 } }',
      'sequence_batching.direct has no effect',
    ],
    [
      'sequence_batching { direct { max_queue_delay_microseconds: 1 } }',
      'sequence_batching.direct has no effect',
    ],
    ['metric_tags { key: "model" value: "x" }', 'metric_tags of model, version or le has no effect'],
    ['backend: "kserve" default_model_filename: "x"', 'default_model_filename has no effect'],
    ['ensemble_scheduling { } default_model_filename: "x"', 'default_model_filename has no effect'],
    [
      'parameters { key: "gantry.kserve_addresses" value { string_value: "a:1" } }',
      'gantry.kserve_* has no effect',
    ],
    [
      'parameters { key: "gantry.timeout_ms" value { string_value: "1" } }',
      'gantry.timeout_ms has no effect',
    ],
    [
      'parameters { key: "arena_of_the_cpu" value { string_value: "1" } }',
      'parameters of the ONNX Runtime backend for memory has no effect',
    ],
  ])('is one that says what has no effect, and is warned of it: %s', (text, words) => {
    expect(checkSupported(named(text, 'm'), 'config.pbtxt', 'server')).toEqual([
      expect.stringContaining(words),
    ])
  })

  it('is one that says nothing', () => {
    expect(checkSupported({ ...emptyModelConfig, name: 'm' }, 'config.pbtxt', 'server')).toEqual([])
  })
})
