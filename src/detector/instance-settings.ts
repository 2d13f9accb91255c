import { availableParallelism } from 'node:os'
import type { InferenceConfig } from '../config/inference.js'
import { ModelConfigError } from '../repository/errors.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import { type BatchSizes, sizesUpTo } from '../runtime/batch-sizes.js'
import type { DeviceKind } from '../backends/onnxruntime/providers.js'

/** How many sessions run and how much they take at once. */
export type InstanceSettings = Readonly<{
  instances: number
  maxBatchSize: number
  maxQueueDelayMs: number
}>

/**
 * Measured: a batch gains nothing on CPU and much on a GPU; one thread per core beats threads inside a session. On a GPU one thread
 * fills its input and reads its boxes while the run of the other one goes on; alone it left an H100 idle for 40 % of the time.
 */
const defaults = {
  cpu: { instances: () => availableParallelism(), maxBatchSize: 1 },
  gpu: { instances: () => 2, maxBatchSize: 8 },
} as const

/**
 * Instances and batch size for a device, of which GPUs have a number: what the pipeline file says, else the model's own configuration, else the defaults of
 * the device; never more in a batch than the model takes.
 */
export function instanceSettings(
  device: DeviceKind,
  inference: InferenceConfig,
  model: OnnxModel,
  modelMaxBatchSize: number,
  deviceId = 0,
): InstanceSettings {
  const own = instancesInConfig(model, device, deviceId)
  const wanted = inference.maxBatchSize ?? mostOf(inference, device) ?? defaults[device].maxBatchSize
  const maxBatchSize = Math.min(wanted, modelMaxBatchSize)
  return {
    instances: inference.instances ?? own ?? defaults[device].instances(),
    maxBatchSize,
    maxQueueDelayMs: maxBatchSize === 1 ? 0 : inference.maxQueueDelayMs,
  }
}

/**
 * Sizes of batches on a GPU whose sessions take one each: what the pipeline file says, else what the model prefers, else the usual.
 *
 * @throws ModelConfigError for `inference.batchSizes` beyond what the model takes
 */
export function gpuBatchSizes(
  inference: InferenceConfig,
  model: OnnxModel,
  modelMaxBatchSize: number,
): BatchSizes {
  const tooLarge = inference.batchSizes?.find((size) => size > modelMaxBatchSize)
  if (tooLarge !== undefined)
    throw new ModelConfigError(
      `inference.batchSizes has ${tooLarge}, but model "${model.name}" takes batches of ${modelMaxBatchSize} at most`,
      `Leave out what is larger than ${modelMaxBatchSize}, or export the model for larger batches.`,
    )
  const { maxBatchSize } = instanceSettings('gpu', inference, model, modelMaxBatchSize)
  const preferred = model.config.dynamic_batching?.preferred_batch_size ?? []
  return sizesUpTo(maxBatchSize, inference.batchSizes ?? preferred)
}

/** The sizes are of a GPU: they say nothing of the CPU. */
function mostOf({ batchSizes }: InferenceConfig, device: DeviceKind): number | undefined {
  return device === 'gpu' && batchSizes !== undefined ? Math.max(...batchSizes) : undefined
}

/** Sum over the groups of the model's configuration that take part and are meant for the device or for any; a group without a count counts once. */
function instancesInConfig({ config }: OnnxModel, device: DeviceKind, deviceId: number): number | undefined {
  const kind = device === 'cpu' ? 'KIND_CPU' : 'KIND_GPU'
  const groups = config.instance_group.filter(
    ({ kind: wanted = 'KIND_AUTO', gpus, passive }) =>
      passive !== true &&
      (wanted === kind || wanted === 'KIND_AUTO') &&
      (device === 'cpu' || gpus.length === 0 || gpus.includes(deviceId)),
  )
  const count = groups.reduce((sum, group) => sum + Math.max(1, group.count ?? 1), 0)
  return count === 0 ? undefined : count
}
