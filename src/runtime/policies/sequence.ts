import type { SizeCost } from '../batch-sizes.js'
import type { SequenceBatching } from '../../repository/model-config.js'
import type { Sequence } from '../sequence-slots.js'
import { type BatchRules, batchRules, decideDynamic } from './dynamic.js'
import type { BatchDecision } from './policy.js'

/** A batch by slot, with gaps where a slot has nothing to run. */
export type SequenceBatch = readonly (Sequence | undefined)[]

export type SequenceDecision =
  | Readonly<{ kind: 'idle' }>
  | Readonly<{ kind: 'wait'; forMs: number }>
  | Readonly<{ kind: 'run'; batch: SequenceBatch }>

/** How the sequences of an instance share a run. */
export type SequenceStrategy = Readonly<{
  slotsPerInstance: number
  /** The next run of an instance waits until the sequences of the last one can be in it. */
  together: boolean
  decide: (slots: readonly (Sequence | undefined)[], nowMs: number) => SequenceDecision
}>

/**
 * `direct` unless the configuration says `oldest`.
 *
 * @param costs - of runs, where batches are filled up to certain sizes. For `direct` there is nothing to choose: who stands last in the batch
 *   needs a run of that many rows, whoever else is in it.
 */
export function sequenceStrategy(
  batching: SequenceBatching,
  maxBatchSize: number,
  costs?: readonly SizeCost[],
): SequenceStrategy {
  const { direct, oldest } = batching
  if (oldest !== undefined) {
    const { preferred_batch_size: preferred, max_queue_delay_microseconds: maxDelayUs } = oldest
    const rules = batchRules(maxBatchSize, preferred, maxDelayUs, costs)
    const slotsPerInstance = Math.max(1, oldest.max_candidate_sequences ?? 0)
    return { slotsPerInstance, together: false, decide: (slots, nowMs) => decideOldest(slots, nowMs, rules) }
  }
  const rules = {
    maxDelayMs: (direct?.max_queue_delay_microseconds ?? 0) / 1e3,
    utilization: direct?.minimum_slot_utilization ?? 0,
    batched: maxBatchSize > 0,
  }
  return {
    slotsPerInstance: Math.max(1, maxBatchSize),
    together: true,
    decide: (slots, nowMs) => decideDirect(slots, nowMs, rules),
  }
}

/** A sequence keeps its place in the batch; the model learns by its control inputs which places are empty. */
export function decideDirect(
  slots: readonly (Sequence | undefined)[],
  nowMs: number,
  rules: Readonly<{ maxDelayMs: number; utilization: number; batched: boolean }>,
): SequenceDecision {
  const ready = slots.filter(isReady).sort(byArrival)
  const [oldest] = ready
  if (oldest === undefined) return { kind: 'idle' }
  const leftMs = rules.maxDelayMs - (nowMs - head(oldest).enqueuedMs)
  if (leftMs > 0 && ready.length / slots.length < rules.utilization) return { kind: 'wait', forMs: leftMs }
  if (!rules.batched) return { kind: 'run', batch: [oldest] }
  const joins = (sequence: Sequence | undefined): sequence is Sequence =>
    isReady(sequence) && head(sequence).shapeKey === head(oldest).shapeKey
  const last = slots.findLastIndex(joins)
  return {
    kind: 'run',
    batch: slots.slice(0, last + 1).map((sequence) => (joins(sequence) ? sequence : undefined)),
  }
}

/** The request that has waited longest is run first, with others like it; places in the batch mean nothing. */
export function decideOldest(
  slots: readonly (Sequence | undefined)[],
  nowMs: number,
  rules: BatchRules | undefined,
): SequenceDecision {
  const ready = slots.filter(isReady).sort(byArrival)
  const [oldest] = ready
  if (oldest === undefined) return { kind: 'idle' }
  const decision: BatchDecision =
    rules === undefined
      ? { kind: 'run', count: 1 }
      : decideDynamic(
          {
            candidates: ready.map(head),
            oldestMs: nowMs - head(oldest).enqueuedMs,
            timeoutInMs: undefined,
          },
          rules,
        )
  return decision.kind === 'run' ? { kind: 'run', batch: ready.slice(0, decision.count) } : decision
}

function isReady(sequence: Sequence | undefined): sequence is Sequence {
  return sequence !== undefined && !sequence.running && sequence.queue.length > 0
}

function head(sequence: Sequence): Sequence['queue'][number] {
  return sequence.queue[0]!
}

function byArrival(a: Sequence, b: Sequence): number {
  return head(a).enqueuedMs - head(b).enqueuedMs
}
