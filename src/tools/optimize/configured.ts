import { deviceOf } from '../../backends/onnxruntime/providers.js'
import type { GraphOptimization, ModelConfig } from '../../repository/model-config.js'
import type { Configuration } from './search-space.js'

/** Triton's number of each level. */
const graphLevels: Readonly<Record<GraphOptimization, number>> = {
  disabled: 2,
  basic: -1,
  extended: 1,
  all: 0,
}

/** Threads that run branches of a graph at the same time. */
const parallelBranches = 2

/** Parameters that a configuration decides; those of the model before it go. */
const decided = [
  'intra_op_thread_count',
  'inter_op_thread_count',
  'execution_mode',
  'enable_mem_arena',
  'session.intra_op.allow_spinning',
]

/**
 * The `config.pbtxt` of a model that runs as a configuration says. What of it is ONNX Runtime's own default is written down all the same:
 * what was measured shall hold also where a pipeline file says something else.
 *
 * @param config - of the form of the model.
 */
export function configured(config: ModelConfig, configuration: Configuration): ModelConfig {
  const { dynamic_batching: _, instance_group: __, optimization, ...rest } = config
  const { provider, instances, maxBatch, graph } = configuration
  const isBatched = (config.max_batch_size ?? 0) > 0
  const level = graphLevels[graph]
  const onGpu = deviceOf(provider) === 'gpu'
  return {
    ...rest,
    ...(isBatched && { max_batch_size: maxBatch }),
    instance_group: [
      {
        count: instances,
        kind: onGpu ? 'KIND_GPU' : 'KIND_CPU',
        gpus: [],
        profile: [],
        secondary_devices: [],
      },
    ],
    ...(isBatched && maxBatch > 1 && { dynamic_batching: batching(configuration) }),
    ...((level !== 0 || optimization !== undefined) && {
      optimization: { ...optimization, graph: { level } },
    }),
    parameters: { ...without(config.parameters, decided), ...sessionParameters(configuration) },
  }
}

function batching({ queueDelayUs }: Configuration): NonNullable<ModelConfig['dynamic_batching']> {
  return {
    preferred_batch_size: [],
    priority_queue_policy: {},
    ...(queueDelayUs > 0 && { max_queue_delay_microseconds: queueDelayUs }),
  }
}

function sessionParameters(configuration: Configuration): ModelConfig['parameters'] {
  const { provider, intraOpThreads, spinning, arena, parallel } = configuration
  const text = (value: string | number) => ({ string_value: String(value) })
  return {
    ...(provider === 'cpu' && {
      intra_op_thread_count: text(intraOpThreads),
      enable_mem_arena: text(arena ? 1 : 0),
      'session.intra_op.allow_spinning': text(spinning ? 1 : 0),
    }),
    ...(parallel && { execution_mode: text(1), inter_op_thread_count: text(parallelBranches) }),
  }
}

function without(parameters: ModelConfig['parameters'], names: readonly string[]): ModelConfig['parameters'] {
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !names.includes(name)))
}
