import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ModelConfigError } from '../../src/repository/errors.js'
import { parameterOf } from '../../src/repository/model-config.js'
import { parseModelConfig, readModelConfig } from '../../src/repository/model-config-text.js'
import { tempDir } from '../support/temp-dir.js'

function errorOf(text: string): ModelConfigError {
  try {
    parseModelConfig(text, 'models/m/config.pbtxt')
  } catch (error) {
    if (error instanceof ModelConfigError) return error
    throw error
  }
  throw new Error('no error was thrown')
}

describe('parseModelConfig', () => {
  it('reads every form of the text format that Triton repositories use', () => {
    const config = parseModelConfig(
      `# a comment
       name: "detector"  platform: 'onnxruntime_onnx'; max_batch_size: 0x10
       input [ { name: "images" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ -1, -1, 3 ] } ]
       output { name: "output" "0", data_type: TYPE_FP32, dims: 11 dims: 8400 label_filename: "labels.txt" }
       instance_group: < count: 2 kind: KIND_CPU >
       version_policy: { specific: { versions: [1, 3] } }
       dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 5000 }
       parameters: { key: "gantry.head" value: { string_value: "yolov8" } }
       parameters { key: "gantry.color" value { string_value: "bgr" } }`,
      'config.pbtxt',
    )
    expect(config).toMatchObject({
      name: 'detector',
      platform: 'onnxruntime_onnx',
      max_batch_size: 16,
      input: [{ name: 'images', data_type: 'TYPE_UINT8', format: 'FORMAT_NHWC', dims: [-1, -1, 3] }],
      output: [{ name: 'output0', data_type: 'TYPE_FP32', dims: [11, 8400], label_filename: 'labels.txt' }],
      instance_group: [{ count: 2, kind: 'KIND_CPU' }],
      version_policy: { specific: { versions: [1, 3] } },
      dynamic_batching: { preferred_batch_size: [4, 8], max_queue_delay_microseconds: 5000 },
    })
    expect(parameterOf(config, 'gantry.head')).toBe('yolov8')
    expect(parameterOf(config, 'gantry.color')).toBe('bgr')
    expect(parameterOf(config, 'gantry.range')).toBeUndefined()
  })

  it('keeps what a file leaves out apart from what it sets to the default', () => {
    expect(parseModelConfig('', 'c').max_batch_size).toBeUndefined()
    expect(parseModelConfig('max_batch_size: 0', 'c').max_batch_size).toBe(0)
  })

  it.each([
    ['an unknown field', 'name: "m"\n  max_batchsize: 3', '2:3', "unknown field 'max_batchsize'"],
    ['an unknown field of a tensor', 'input {\n  name: "dimz"   dimz: 3 }', '2:18', "unknown field 'dimz'"],
    ['an unknown word for a type', 'input { data_type: TYPE_FLOAT }', '1:20', 'enum value expected'],
    ['a string for a number', 'name: "m"\nmax_batch_size: "8"', '2:17', 'integer value expected'],
    ['a number out of range', 'max_batch_size: 99999999999', '1:17', 'integer value out of range'],
    ['a missing colon', 'name "m"', '1:1', "expected ':'"],
    ['an open brace', 'input {\n name: "a"\n', '3:1', "expected '}'"],
    ['two values for one field', 'name: "a"\nname: "b"', '2:7', 'multiple values'],
    ['two schedulers', 'dynamic_batching { }\nsequence_batching { }', '2:22', 'multiple values'],
  ])('tells file, line and column of %s', (_, text, place, problem) => {
    const error = errorOf(text)
    expect(error.message).toContain(`models/m/config.pbtxt:${place}: `)
    expect(error.message).toContain(problem)
    expect(error.code).toBe('GANTRY_MODEL_CONFIG')
  })

  it.each([
    [
      'parameters { key: "k" value { string_value: "a" } } parameters { key: "k" value { string_value: "b" } }',
      'parameters["k"]: the key is given twice, with {"string_value":"a"} and {"string_value":"b"}',
    ],
    [
      'ensemble_scheduling { step { input_map [{ key: "x" value: "a" }, { key: "x" value: "b" }] } }',
      'ensemble_scheduling.step[0].input_map["x"]: the key is given twice, with "a" and "b"',
    ],
    [
      'ensemble_scheduling { step { output_map { key: "x" value: "a" } output_map { key: "x" } } }',
      'ensemble_scheduling.step[0].output_map["x"]: the key is given twice, with "a" and ""',
    ],
    [
      'dynamic_batching { priority_queue_policy { key: 1 value { } } priority_queue_policy { key: 0x1 value { max_queue_size: 2 } } }',
      'dynamic_batching.priority_queue_policy[1]: the key is given twice, with {} and {"max_queue_size":2}',
    ],
    ...['metric_tags', 'cc_model_filenames'].map((map) => [
      `${map} { key: "k" value: "a" } ${map} { key: "k" value: "b" }`,
      `${map}["k"]: the key is given twice, with "a" and "b"`,
    ]),
    [
      'model_warmup { inputs { key: "a" value { dims: 1 } } inputs { key: "a" value { dims: 2 } } }',
      'model_warmup[0].inputs["a"]: the key is given twice',
    ],
    [
      'optimization { execution_accelerators { cpu_execution_accelerator { parameters { key: "p" value: "1" } parameters { key: "p" value: "2" } } } }',
      'cpu_execution_accelerator[0].parameters["p"]: the key is given twice',
    ],
    ['parameters { key: "a" key: "b" }', 'multiple values'],
    ['parameters { value { string_value: "x" } }', 'parameters: an entry has no key'],
    ['instance_group { } instance_group { kind: 9 }', 'instance_group[1].kind: 9 is none of Kind'],
    ['model_warmup { inputs { key: "a" value { data_type: -1 } } }', 'inputs["a"].data_type: -1 is none of'],
  ])('refuses %s, which has two meanings or none', (text, words) => {
    expect(errorOf(text).message).toContain(words)
    expect(errorOf(text).hint).not.toBe('')
  })

  it('takes a key that is given twice with one value', () => {
    const tag = 'metric_tags { key: "k" value: "a" }'
    expect(parseModelConfig(`${tag} ${tag}`, 'c').metric_tags).toEqual({ k: 'a' })
  })

  it('suggests the field that was meant', () => {
    expect(errorOf('instance_groups { count: 1 }').hint).toContain('Did you mean "instance_group"?')
  })
})

describe('R66: readModelConfig', () => {
  const file = (content: string | Uint8Array) => {
    const path = join(tempDir(), 'config.pbtxt')
    writeFileSync(path, content)
    return path
  }

  it('reads what an editor on Windows wrote: behind a byte order mark, with CRLF', () => {
    const text = '\uFEFF# mine\r\nname: "bom"\r\nmax_batch_size: 4 # four\r\n'
    expect(readModelConfig(file(text))).toMatchObject({ name: 'bom', max_batch_size: 4 })
  })

  it('refuses UTF-16 by name', () => {
    const path = file(Buffer.from('\uFEFFname: "bom"\r\n', 'utf16le'))
    expect(() => readModelConfig(path)).toThrow(ModelConfigError)
    expect(() => readModelConfig(path)).toThrow(`${path} cannot be read: it is UTF-16`)
  })
})
