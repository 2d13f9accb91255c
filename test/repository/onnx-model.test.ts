import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { GantryError } from '../../src/errors.js'
import { readDefinition, readModel } from '../../src/repository/model-definition.js'
import { openOnnxModel, openOnnxVersion } from '../../src/repository/onnx-model.js'
import { modelFolder, modelNames } from '../../src/repository/repository-files.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const onnx = redDetector('uint8-nhwc')
const tensors = `
  input { name: "images" data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] }
  output { name: "output0" data_type: TYPE_FP32 dims: [ 6, 84 ] }`

function open(files: Parameters<typeof addModel>[2], version?: number) {
  const repository = tempDir()
  addModel(repository, 'red', { onnx, ...files })
  return openOnnxModel(readModel(repository, 'red'), version)
}

describe('model repository', () => {
  it('completes a model without a configuration as Triton does', () => {
    expect(open({}).config).toMatchObject({
      name: 'red',
      backend: 'onnxruntime',
      max_batch_size: 4,
      input: [{ name: 'images', data_type: 'TYPE_UINT8', dims: [64, 64, 3] }],
      output: [{ name: 'output0', data_type: 'TYPE_FP32', dims: [6, 84] }],
      dynamic_batching: {},
    })
  })

  it('gives a model with a fixed batch dimension no batching', () => {
    const { config } = open({ onnx: redDetector('uint8-nhwc', 1) })
    expect(config).toMatchObject({ max_batch_size: 0, input: [{ dims: [1, 64, 64, 3] }] })
    expect(config.dynamic_batching).toBeUndefined()
  })

  it('takes what is written as it is', () => {
    const { config, configuredMaxBatchSize } = open({ config: `max_batch_size: 16 ${tensors}` })
    expect(config.max_batch_size).toBe(16)
    expect(config.dynamic_batching).toBeUndefined()
    expect(configuredMaxBatchSize).toBe(16)
  })

  it.each([
    [
      'a tensor the model lacks',
      'max_batch_size: 8 input { name: "image" data_type: TYPE_UINT8 dims: [64, 64, 3] }',
      'has no input "image"',
    ],
    [
      'another type',
      tensors.replace('TYPE_UINT8', 'TYPE_FP32') + ' max_batch_size: 8',
      'input "images" is uint8 [batch, 64, 64, 3] in the model, but TYPE_FP32 [-1, 64, 64, 3] is expected',
    ],
    [
      'another size',
      tensors.replace('64, 64', '32, 64') + ' max_batch_size: 8',
      'but TYPE_UINT8 [-1, 32, 64, 3] is expected',
    ],
    ['another rank', `max_batch_size: 0 ${tensors}`, 'but TYPE_UINT8 [64, 64, 3] is expected'],
  ])('refuses a configuration with %s, naming tensor and shapes', (_, config, problem) => {
    expect(() => open({ config })).toThrow(problem)
  })

  it('refuses batches for a model that takes none', () => {
    const fixed = redDetector('uint8-nhwc', 1)
    expect(() => open({ onnx: fixed, config: `max_batch_size: 8 ${tensors}` })).toThrow(
      'uint8 [1, 64, 64, 3]',
    )
  })

  it('serves the highest version, or those the policy names', () => {
    const repository = tempDir()
    for (const version of [1, 2, 10]) addModel(repository, 'red', { onnx, version })
    mkdirSync(join(repository, 'red', 'notes'))
    mkdirSync(join(repository, 'red', '007'))
    const versions = (config: string) => {
      writeFileSync(join(repository, 'red', 'config.pbtxt'), config)
      return readModel(repository, 'red').versions
    }
    expect(versions('')).toEqual([10])
    expect(versions('version_policy { latest { num_versions: 2 } }')).toEqual([2, 10])
    expect(versions('version_policy { all { } }')).toEqual([1, 2, 10])
    expect(versions('version_policy { specific { versions: [2, 5] } }')).toEqual([2])
    expect(openOnnxModel(readModel(repository, 'red')).version).toBe('2')
    expect(() => openOnnxModel(readModel(repository, 'red'), 10)).toThrow('has no version 10')
  })

  it('takes labels from the file that is named, else labels.txt, else the metadata', () => {
    const named = tensors.replace('dims: [ 6,', 'label_filename: "classes.txt" dims: [ 6,')
    expect(open({}).labels).toEqual(['blue', 'red'])
    expect(open({ labels: 'a\nb\n' })).toMatchObject({ labels: ['a', 'b'], labelsFrom: 'labels.txt' })
    expect(() => open({ config: `max_batch_size: 8 ${named}` })).toThrow(/cannot read labels .*classes\.txt/)
  })

  it.each([
    [
      'label_filename',
      tensors.replace('dims: [ 6,', 'label_filename: "../../etc/passwd" dims: [ 6,') + ' max_batch_size: 8',
    ],
    ['default_model_filename', 'default_model_filename: "../other/model.onnx"'],
    ['default_model_filename', 'default_model_filename: ".."'],
    [
      'label_filename',
      `${tensors} output { name: "other" data_type: TYPE_FP32 dims: 1 label_filename: "../x" } max_batch_size: 8`,
    ],
  ])('lets %s not lead out of the model folder', (field, config) => {
    expect(() => open({ config })).toThrow(`${field} "..`)
  })

  it('takes any plain file name, for cameras and for clients', () => {
    const repository = tempDir()
    const config = 'default_model_filename: "the model.onnx"'
    addModel(repository, 'red', { onnx, config })
    renameSync(join(repository, 'red/1/model.onnx'), join(repository, 'red/1/the model.onnx'))
    const path = join(repository, 'red/1/the model.onnx')
    expect(openOnnxModel(readModel(repository, 'red')).path).toBe(path)
    const { folder, config: read } = readDefinition(modelFolder('red', repository))
    expect(openOnnxVersion(join(folder.dir, '1'), read).path).toBe(path)
  })

  it('takes a folder in the place of the file, with the weights beside the model', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx })
    mkdirSync(join(repository, 'red/2/model.onnx'), { recursive: true })
    cpSync(join(repository, 'red/1/model.onnx'), join(repository, 'red/2/model.onnx/model.onnx'))
    expect(openOnnxModel(readModel(repository, 'red')).path).toBe(
      join(repository, 'red/2/model.onnx/model.onnx'),
    )
  })

  it('names what there is when a model is not found', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx })
    expect(() => readModel(repository, 'rde')).toThrow('model "rde" is not in')
    const hint = (name: string) => {
      try {
        readModel(repository, name)
      } catch (error) {
        return (error as GantryError).hint
      }
      return undefined
    }
    expect([hint('redd'), hint('blue')]).toEqual(['Did you mean red? It has: red.', 'It has: red.'])
    expect(() => readModel(repository, '../red')).toThrow('is not in')
    expect(() => modelNames(join(repository, 'none'))).toThrow(
      /cannot read model repository .*: no such folder$/,
    )
  })

  it('refuses a name that is not the name of the folder', () => {
    expect(() => open({ config: 'name: "blue"' })).toThrow("unexpected directory name 'red' for model 'blue'")
  })

  it('says where the model file belongs when there is none', () => {
    const repository = tempDir()
    addModel(repository, 'empty', { config: '' })
    expect(() => openOnnxModel(readModel(repository, 'empty'))).toThrow('has no version to serve')
    mkdirSync(join(repository, 'empty', '3'))
    expect(() => openOnnxModel(readModel(repository, 'empty'))).toThrow(/has no file .*empty\/3\/model\.onnx/)
  })
})
