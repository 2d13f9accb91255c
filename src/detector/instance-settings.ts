import { availableParallelism } from 'node:os'
import type { InferenceConfig } from '../config/inference.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import type { DeviceKind } from '../backends/onnxruntime/providers.js'

/** How many sessions run and how much they take at once. */
export type InstanceSettings = Readonly<{
  instances: number
  maxBatchSize: number
  maxQueueDelayMs: number
}>

/** Measured: a batch gains nothing on CPU and much on a GPU; one thread per core beats threads inside a session. */
const defaults = {
  cpu: { instances: () => availableParallelism(), maxBatchSize: 1 },
  gpu: { instances: () => 1, maxBatchSize: 8 },
} as const

/**
 * Instances and batch size for a device: what the pipeline file says, else the model's own configuration, else the defaults of
 * the device; never more in a batch than the model takes.
 */
export function instanceSettings(
  device: DeviceKind,
  inference: InferenceConfig,
  model: OnnxModel,
  modelMaxBatchSize: number,
): InstanceSettings {
  const own = instancesInConfig(model, device)
  const maxBatchSize = Math.min(inference.maxBatchSize ?? defaults[device].maxBatchSize, modelMaxBatchSize)
  return {
    instances: inference.instances ?? own ?? defaults[device].instances(),
    maxBatchSize,
    maxQueueDelayMs: maxBatchSize === 1 ? 0 : inference.maxQueueDelayMs,
  }
}

/** Sum over the groups of the model's configuration that take part and are meant for the device or for any; a group without a count counts once. */
function instancesInConfig({ config }: OnnxModel, device: DeviceKind): number | undefined {
  const kind = device === 'cpu' ? 'KIND_CPU' : 'KIND_GPU'
  const groups = config.instance_group.filter(
    ({ kind: wanted = 'KIND_AUTO', passive }) =>
      passive !== true && (wanted === kind || wanted === 'KIND_AUTO'),
  )
  const count = groups.reduce((sum, group) => sum + Math.max(1, group.count ?? 1), 0)
  return count === 0 ? undefined : count
}
