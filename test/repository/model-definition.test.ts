import { describe, expect, it } from 'vitest'
import { configJson } from '../../src/api/kserve/config-json.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { readDefinition } from '../../src/repository/model-definition.js'
import { backendOf } from '../../src/repository/supported-config.js'
import { modelFolder } from '../../src/repository/repository-files.js'
import { accepted } from '../support/configuration-forms.js'
import { addModel } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const others = [
  { name: 'nothing', text: '' },
  { name: 'steps', text: 'platform: "ensemble" ensemble_scheduling { step { model_name: "plain" } }' },
  { name: 'oldest', text: 'max_batch_size: 4 sequence_batching { oldest { } }' },
]

describe('a configuration as clients are told it', () => {
  // It names a version that is not there.
  const forms = [...accepted, ...others].filter(({ name }) => name !== 'versions')

  it.each(forms)('asks for the same when it is sent back: $name', ({ name, text }) => {
    const repository = tempDir()
    addModel(repository, name, { config: text, onnx: new Uint8Array() })
    const folder = modelFolder(name, repository)
    const written = readDefinition(folder)
    const told = JSON.stringify(configJson(written.config))
    const sentBack = readDefinition(folder, told)
    expect(JSON.stringify(configJson(sentBack.config))).toBe(told)
    expect(sentBack.versions).toEqual(written.versions)
    expect(sentBack.warnings).toEqual(written.warnings)
  })
})

describe('backendOf', () => {
  it.each([
    ['', 'onnxruntime'],
    ['platform: "onnxruntime_onnx"', 'onnxruntime'],
    ['backend: "onnxruntime"', 'onnxruntime'],
    ['platform: "ensemble"', 'ensemble'],
    ['ensemble_scheduling { }', 'ensemble'],
    ['backend: "detection_head"', 'detection_head'],
    ['platform: "tensorrt_plan"', 'tensorrt_plan'],
  ])('%s is run by %s', (text, backend) => {
    expect(backendOf(parseModelConfig(text, 'c'))).toBe(backend)
  })
})
