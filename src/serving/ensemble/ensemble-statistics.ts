import { wallMs } from '../../lifecycle/clock.js'
import type { BatchStatistics, ModelStatistics, requestDurations } from '../statistics.js'

type Sum = { count: number; ns: number }
const zero = (): Sum => ({ count: 0, ns: 0 })

/** Counts what becomes of the requests of an ensemble. Its steps keep their own statistics. */
export class EnsembleStatistics {
  readonly #sums: Record<(typeof requestDurations)[number], Sum> = {
    success: zero(),
    fail: zero(),
    queue: zero(),
    compute_input: zero(),
    compute_infer: zero(),
    compute_output: zero(),
    cache_hit: zero(),
    cache_miss: zero(),
  }
  readonly #batches = new Map<number, Sum>()
  #lastInferenceMs = 0
  #items = 0
  #requests = 0

  succeeded(items: number, requestNs: number, queueNs: number, computeNs: number): void {
    this.#lastInferenceMs = wallMs()
    this.#items += items
    this.#requests += 1
    add(this.#sums.success, requestNs)
    add(this.#sums.queue, queueNs)
    add(this.#sums.compute_input, 0)
    add(this.#sums.compute_infer, computeNs)
    add(this.#sums.compute_output, 0)
    const batch = this.#batches.get(items) ?? zero()
    this.#batches.set(items, batch)
    add(batch, computeNs)
  }

  failed(requestNs: number): void {
    add(this.#sums.fail, requestNs)
  }

  statistics(name: string, version: string): ModelStatistics {
    const batches = [...this.#batches].sort(([a], [b]) => a - b)
    return {
      name,
      version,
      lastInferenceMs: this.#lastInferenceMs,
      inferenceCount: this.#items,
      executionCount: this.#requests,
      inference: structuredClone(this.#sums),
      batches: batches.map(([batchSize, computeInfer]): BatchStatistics => ({
        batchSize,
        computeInput: { count: computeInfer.count, ns: 0 },
        computeInfer: { ...computeInfer },
        computeOutput: { count: computeInfer.count, ns: 0 },
      })),
      memory: [],
    }
  }
}

function add(sum: Sum, ns: number): void {
  sum.count += 1
  sum.ns += Math.round(ns)
}
