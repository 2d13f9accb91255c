import type { DynamicBatching, QueuePolicy } from '../../repository/model-config.js'

/** What a queue of one priority level does with its requests. */
export type LevelRules = Readonly<{
  /** 0: no limit. */
  maxSize: number
  /** 0: none. */
  timeoutMs: number
  /** A request may shorten the time-out, never lengthen it. */
  mayShorten: boolean
  /** What becomes of a request whose time-out has passed: an error, or a place behind all others of its level. */
  onTimeout: 'REJECT' | 'DELAY'
}>

/** Levels from 1, the highest, at index 0. */
export type QueueRules = Readonly<{ levels: readonly LevelRules[]; defaultLevel: number }>

/** One level without limits. */
export const plainQueue: QueueRules = {
  levels: [{ maxSize: 0, timeoutMs: 0, mayShorten: false, onTimeout: 'REJECT' }],
  defaultLevel: 1,
}

/** Without `priority_levels` there is one level, and what is said of levels is not read. */
export function queueRules(batching: DynamicBatching): QueueRules {
  const { priority_levels: levels = 0, default_priority_level: defaultLevel = 1 } = batching
  const policyOf = (level: number) => batching.priority_queue_policy[String(level)] ?? defaultPolicy
  const defaultPolicy = batching.default_queue_policy ?? {}
  if (levels === 0) return { levels: [levelRules(defaultPolicy)], defaultLevel: 1 }
  return {
    levels: Array.from({ length: levels }, (_, index) => levelRules(policyOf(index + 1))),
    defaultLevel,
  }
}

/**
 * The level of a request: its own, or the default for 0 and for levels there are not.
 *
 * @see triton-inference-server/core, src/infer_request.cc, InferenceRequest::SetPriority
 */
export function levelOf(priority: number, rules: QueueRules): number {
  return priority >= 1 && priority <= rules.levels.length ? priority : rules.defaultLevel
}

/** Time-out of a request in ms, 0 for none. Without one in the configuration, its own does not count. */
export function timeoutOf(rules: LevelRules, requestUs: number): number {
  const requestMs = requestUs / 1e3
  return rules.mayShorten && requestMs > 0 && requestMs < rules.timeoutMs ? requestMs : rules.timeoutMs
}

function levelRules(policy: QueuePolicy): LevelRules {
  return {
    maxSize: policy.max_queue_size ?? 0,
    timeoutMs: (policy.default_timeout_microseconds ?? 0) / 1e3,
    mayShorten: policy.allow_timeout_override === true,
    onTimeout: policy.timeout_action ?? 'REJECT',
  }
}
