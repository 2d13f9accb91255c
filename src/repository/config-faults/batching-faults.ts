import type { DynamicBatching, ModelConfig, QueuePolicy } from '../model-config.js'
import { batchLimit, type ConfigFault, listed } from './fault.js'

/** Each level is a queue. */
const mostPriorityLevels = 10_000

/** Batch sizes, priority levels and the order of answers. */
export function batchingFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', max_batch_size: size = 0, dynamic_batching: batching } = config
  const negative: ConfigFault = {
    field: 'max_batch_size',
    problem: `'max_batch_size' must be non-negative value for ${model}: it is ${size}`,
    fix: 'write 0 for a model without a batch dimension, else the largest batch',
  }
  return [
    ...(size < 0 ? [negative] : []),
    ...batchSizeFaults(config),
    ...(batching === undefined
      ? []
      : [...priorityFaults(batching, model), ...orderingFaults(batching, model)]),
  ]
}

/** What is said of the sizes of batches; the largest may come from the model file. */
export function batchSizeFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', dynamic_batching, sequence_batching } = config
  const limit = batchLimit(config)
  const preferred = (field: string, words: string, sizes: readonly number[]): ConfigFault[] => {
    const fault = (problem: string, fix: string) => ({
      field,
      problem: `${words} ${problem} for ${model}: it is ${listed(sizes)}`,
      fix,
    })
    return [
      ...(sizes.some((size) => size <= 0) ? [fault('must be positive', 'write sizes from 1')] : []),
      ...(limit !== undefined && sizes.some((size) => size > limit)
        ? [fault('must be <= max batch size', `write at most max_batch_size, ${limit}`)]
        : []),
    ]
  }
  return [
    ...preferred(
      'dynamic_batching.preferred_batch_size',
      'dynamic batching preferred size',
      dynamic_batching?.preferred_batch_size ?? [],
    ),
    ...preferred(
      'sequence_batching.oldest.preferred_batch_size',
      'sequence batching preferred batch size',
      sequence_batching?.oldest?.preferred_batch_size ?? [],
    ),
    ...config.model_warmup.flatMap(({ batch_size = 0 }, index) =>
      limit !== undefined && batch_size > Math.max(1, limit)
        ? [
            {
              field: `model_warmup[${index}].batch_size`,
              problem: `warm-up batch size must be <= max batch size for ${model}: it is ${batch_size}`,
              fix: `write at most ${Math.max(1, limit)}`,
            },
          ]
        : [],
    ),
  ]
}

function priorityFaults(batching: DynamicBatching, model: string): readonly ConfigFault[] {
  const { priority_levels: levels = 0, default_priority_level: given = 0, priority_queue_policy } = batching
  if (levels === 0) return []
  if (levels > mostPriorityLevels)
    return [
      {
        field: 'dynamic_batching.priority_levels',
        problem: `${levels} priority levels for ${model}`,
        fix: `write at most ${mostPriorityLevels}`,
      },
    ]
  const outside = Object.keys(priority_queue_policy).filter((key) => Number(key) < 1 || Number(key) > levels)
  return [
    ...(given >= 1 && given <= levels
      ? []
      : [
          {
            field: 'dynamic_batching.default_priority_level',
            problem: `default priority level must be in range [1, ${levels}] for ${model}: it is ${given}`,
            fix: 'write the level of requests that name none; 1 is the highest',
          },
        ]),
    ...outside.map((key) => ({
      field: `dynamic_batching.priority_queue_policy[${key}]`,
      problem: `priority queue policy must have priority level in range [1, ${levels}] for ${model}: key is ${key}`,
      fix: 'write the key of a level, or raise priority_levels',
    })),
  ]
}

function orderingFaults(batching: DynamicBatching, model: string): readonly ConfigFault[] {
  if (batching.preserve_ordering !== true) return []
  const { priority_levels: levels = 0, default_queue_policy, priority_queue_policy } = batching
  const policies: readonly (readonly [string, QueuePolicy])[] = [
    ['default_queue_policy', default_queue_policy ?? {}],
    ...Object.entries(priority_queue_policy).map(
      ([key, policy]) => [`priority_queue_policy[${key}]`, policy] as const,
    ),
  ]
  return [
    ...(levels > 1
      ? [
          {
            field: 'dynamic_batching.preserve_ordering',
            problem: `Only one priority level is allowed when 'preserve_ordering' is true for ${model}: priority_levels is ${levels}`,
            fix: 'leave out one of the two',
          },
        ]
      : []),
    ...policies.flatMap(([field, policy]) =>
      policy.timeout_action === 'DELAY' && (policy.default_timeout_microseconds ?? 0) > 0
        ? [
            {
              field: `dynamic_batching.${field}.timeout_action`,
              problem: `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${model}`,
              fix: 'write REJECT, or leave preserve_ordering out',
            },
          ]
        : [],
    ),
  ]
}
