import { describe, expect, it } from 'vitest'
import { parseModelConfigJson } from '../../src/repository/model-config-json.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'

describe('parseModelConfigJson', () => {
  it.each([
    ['a field', '{"max_batch_size": 4, "max_batch_size": 8}', 'max_batch_size is given twice, with 4 and 8'],
    [
      'a field to the same value',
      '{"max_batch_size": 4, "max_batch_size": 4}',
      'max_batch_size is given twice',
    ],
    [
      'a field in a list',
      '{"input": [{"name": "a"}, {"dims": [1], "dims": [2]}]}',
      'input.1.dims is given twice, with [1] and [2]',
    ],
    [
      'a field by both of its names',
      '{"maxBatchSize": 4, "max_batch_size": 8}',
      'max_batch_size is given twice, by two names',
    ],
    [
      'a key',
      '{"parameters": {"k": {"string_value": "a"}, "\\u006b": {"string_value": "b"}}}',
      'parameters.k is given twice, with {"string_value":"a"} and {"string_value":"b"}',
    ],
    [
      'a level in other digits',
      '{"dynamic_batching": {"priority_queue_policy": {"1": {}, "01": {}}}}',
      'dynamic_batching.priority_queue_policy has the key "01"',
    ],
    ['nothing', '{"metric_tags": {"": "x"}}', 'metric_tags has the key ""'],
    [
      'two kinds of data',
      '{"model_warmup": [{"inputs": {"a": {"zero_data": true, "random_data": true}}}]}',
      'zero_data and random_data exclude each other',
    ],
    [
      'a number that is none of an enumeration',
      '{"instance_group": [{"kind": 9}]}',
      'instance_group[0].kind must be one of KIND_AUTO',
    ],
  ])('refuses what gives %s two meanings', (_, json, words) => {
    expect(() => parseModelConfigJson(json, 'request')).toThrow(`request: ${words}`)
  })

  it('reads what a file says, with what it sets to the default', () => {
    const text = `max_batch_size: 0 input { name: "a" data_type: TYPE_FP32 dims: [-1, 3] }
      version_policy { latest { num_versions: 0 } } parameters { key: "__proto__" value { string_value: "x" } }
      model_warmup { inputs { key: "a" value { dims: 2 zero_data: false } } }`
    const config = parseModelConfig(text, 'config.pbtxt')
    expect(parseModelConfigJson(JSON.stringify(config), 'request')).toEqual(config)
    expect(Object.entries(config.parameters)).toEqual([['__proto__', { string_value: 'x' }]])
  })

  it('takes numbers as texts, numbers of enumerations, camel case, and null for nothing', () => {
    expect(
      parseModelConfigJson(
        '{"maxBatchSize": 2, "input": [{"dims": ["-1"], "data_type": 11}], "dynamic_batching": null}',
        'request',
      ),
    ).toMatchObject({ max_batch_size: 2, input: [{ dims: [-1], data_type: 'TYPE_FP32' }] })
  })

  it('refuses text that is deeper than any configuration', () => {
    expect(() => parseModelConfigJson('['.repeat(1e5) + ']'.repeat(1e5), 'request')).toThrow(
      'request: it is more than 100 levels deep',
    )
  })
})
