import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { inferenceSchema } from '../../src/config/inference.js'
import { instanceSettings } from '../../src/detector/instance-settings.js'
import { readModel } from '../../src/repository/model-definition.js'
import { openOnnxModel } from '../../src/repository/onnx-model.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

function model(config = '') {
  const repository = tempDir()
  const onnx = buildOnnx({
    inputs: [{ name: 'images', type: 'uint8', shape: ['N', 64, 64, 3] }],
    outputs: [{ name: 'output0', type: 'float32', shape: ['N', 6, 84] }],
    nodes: [],
  })
  addModel(repository, 'm', { onnx, config })
  return openOnnxModel(readModel(repository, 'm'))
}

/** Of a model that takes batches of up to 16. */
const settings = (device: 'cpu' | 'gpu', inference: object = {}, config?: string) =>
  instanceSettings(device, inferenceSchema.parse(inference), model(config), 16)

describe('instanceSettings', () => {
  it('gives a CPU one instance per core, of one thread, that takes a frame at a time and waits for none', () => {
    expect(settings('cpu')).toEqual({
      instances: availableParallelism(),
      maxBatchSize: 1,
      maxQueueDelayMs: 0,
    })
    expect(inferenceSchema.parse({}).intraOpThreads).toBe(1)
  })

  it('gives a GPU one instance that batches', () => {
    expect(settings('gpu')).toEqual({ instances: 1, maxBatchSize: 8, maxQueueDelayMs: 5 })
  })

  it('takes the groups of the model for the device, and the pipeline file before them', () => {
    const groups = `instance_group [ { kind: KIND_CPU count: 3 }, { kind: KIND_GPU }, { count: 2 } ]`
    expect(settings('cpu', {}, groups).instances).toBe(5)
    expect(settings('gpu', {}, groups).instances).toBe(3)
    expect(settings('cpu', { instances: 7 }, groups).instances).toBe(7)
  })

  it('leaves out groups that are passive', () => {
    const groups = `instance_group [ { kind: KIND_CPU count: 3 }, { count: 2 passive: true } ]`
    expect(settings('cpu', {}, groups).instances).toBe(3)
  })

  it('never batches more than the model takes', () => {
    expect(settings('cpu', { maxBatchSize: 4 }).maxBatchSize).toBe(4)
    expect(settings('cpu', { maxBatchSize: 64 }).maxBatchSize).toBe(16)
  })
})
