import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { inferenceSchema } from '../../src/config/inference.js'
import { gpuBatchSizes, instanceSettings } from '../../src/detector/instance-settings.js'
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

  it('gives a GPU two instances that batch', () => {
    expect(settings('gpu')).toEqual({ instances: 2, maxBatchSize: 8, maxQueueDelayMs: 5 })
  })

  it('takes the groups of the model for the device, and the pipeline file before them', () => {
    const groups = `instance_group [ { kind: KIND_CPU count: 3 }, { kind: KIND_GPU }, { count: 2 } ]`
    expect(settings('cpu', {}, groups).instances).toBe(5)
    expect(settings('gpu', {}, groups).instances).toBe(3)
    expect(settings('cpu', { instances: 7 }, groups).instances).toBe(7)
  })

  it('counts on a GPU the groups that name it, and those that name none', () => {
    const groups = `instance_group [ { gpus: [0] count: 2 }, { kind: KIND_GPU gpus: [1, 2] count: 3 }, { count: 1 } ]`
    const on = (deviceId: number) =>
      instanceSettings('gpu', inferenceSchema.parse({}), model(groups), 16, deviceId).instances
    expect([0, 1, 2, 3].map(on)).toEqual([3, 4, 4, 1])
    expect(settings('cpu', {}, groups).instances).toBe(3)
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

describe('sizes of batches on a GPU', () => {
  const sizes = (inference: object, config?: string, most = 16) =>
    gpuBatchSizes(inferenceSchema.parse(inference), model(config), most)

  it('are the usual ones up to the largest batch', () => {
    expect(sizes({})).toEqual([1, 4, 8])
    expect(sizes({ maxBatchSize: 16 })).toEqual([1, 4, 16])
    expect(sizes({}, undefined, 1)).toEqual([1])
  })

  it('are those that the model prefers, and those of the pipeline file before them', () => {
    const preferred = 'max_batch_size: 16 dynamic_batching { preferred_batch_size: [ 2, 6 ] }'
    expect(sizes({}, preferred)).toEqual([2, 6, 8])
    expect(sizes({ batchSizes: [16, 2] }, preferred)).toEqual([2, 16])
    expect(settings('gpu', { batchSizes: [16, 2] }).maxBatchSize).toBe(16)
    expect(settings('cpu', { batchSizes: [16, 2] }).maxBatchSize).toBe(1)
  })

  it.each([
    [{ batchSizes: [0] }, '>=1'],
    [{ batchSizes: [] }, '>=1'],
    [{ batchSizes: [1.5] }, 'int'],
    [{ batchSizes: [1, 16], maxBatchSize: 8 }, '16 is more than maxBatchSize, which is 8'],
  ])('refuse %j', (inference, why) => {
    expect(() => inferenceSchema.parse(inference)).toThrow(why)
  })

  it('refuse more than the model takes, by name', () => {
    expect(() => sizes({ batchSizes: [1, 32] })).toThrow(
      'inference.batchSizes has 32, but model "m" takes batches of 16 at most',
    )
  })
})
