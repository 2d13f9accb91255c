import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { SizeCost } from './batch-sizes.js'
import type { CountedStatistics } from './counted-statistics.js'
import type { SlowRun } from './slow-runs.js'
import { countCopy } from '../tensors/tensor-buffers.js'
import type { FailureReason } from '../tensors/serving-error.js'
import {
  type BatchStatistics,
  DurationHistogram,
  type ExecutionTimes,
  type ModelStatistics,
  type requestDurations,
  type Stage,
} from './statistics.js'
import { UsualTime } from './usual-time.js'

type DurationName = (typeof requestDurations)[number]
type Sum = { count: number; ns: number }
type BatchSums = { computeInput: Sum; computeInfer: Sum; computeOutput: Sum }
type Batches = Readonly<{ sums: BatchSums; usual: UsualTime }>

/**
 * Counts what becomes of the requests of one version of a model, from when it is loaded.
 *
 * Durations are whole nanoseconds. The three compute durations are always counted together, and the cache's stay 0 unless one is
 * asked.
 */
export class StatisticsRecorder implements CountedStatistics {
  readonly histograms: Readonly<Record<Stage, DurationHistogram>> = {
    request: new DurationHistogram(),
    queue: new DurationHistogram(),
    compute_input: new DurationHistogram(),
    compute_infer: new DurationHistogram(),
    compute_output: new DurationHistogram(),
  }
  readonly failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 }
  /** Requests that wait for an instance. */
  pending = 0
  copiedBytes = 0
  inferenceCount = 0
  executionCount = 0
  /** From when this was created until the model served. */
  loadSeconds = 0
  readonly #createdMs = nowMs()
  readonly inference: Record<DurationName, Sum> = {
    success: zero(),
    fail: zero(),
    queue: zero(),
    compute_input: zero(),
    compute_infer: zero(),
    compute_output: zero(),
    cache_hit: zero(),
    cache_miss: zero(),
  }
  sizes: readonly SizeCost[] = []
  /** Runs that took ten times the median of their size, or more. */
  slowRuns = 0
  /** Called with each of them. */
  onSlowRun: ((run: SlowRun) => void) | undefined
  /** By their items. */
  readonly #batches = new Map<number, Batches>()
  #lastInferenceMs = 0

  constructor(
    readonly model: string,
    readonly version: string,
    /** Labels that the configuration adds to the metrics of the model. */
    readonly metricTags: Readonly<Record<string, string>> = {},
  ) {}

  /** The model serves; the load began when this was created. */
  recordLoaded(): void {
    this.loadSeconds = (nowMs() - this.#createdMs) / 1e3
  }

  /**
   * A request was answered by a run.
   *
   * @param items - its batch size.
   * @param times - of the run that it was in.
   */
  recordSuccess(items: number, requestNs: number, queueNs: number, times: ExecutionTimes): void {
    this.#lastInferenceMs = wallMs()
    this.inferenceCount += items
    this.#add('success', requestNs)
    this.#add('queue', queueNs)
    this.#add('compute_input', times.computeInputNs)
    this.#add('compute_infer', times.computeInferNs)
    this.#add('compute_output', times.computeOutputNs)
    this.histograms.request.observe(requestNs)
    this.histograms.queue.observe(queueNs)
    this.histograms.compute_input.observe(times.computeInputNs)
    this.histograms.compute_infer.observe(times.computeInferNs)
    this.histograms.compute_output.observe(times.computeOutputNs)
  }

  /** A run ended well. @param items - in all its requests together, and places of sequences that were empty. */
  recordExecution(items: number, times: ExecutionTimes): void {
    this.executionCount += 1
    this.copiedBytes += times.copiedBytes ?? 0
    countCopy(times.copiedBytes ?? 0)
    let batches = this.#batches.get(items)
    if (batches === undefined) {
      batches = {
        sums: { computeInput: zero(), computeInfer: zero(), computeOutput: zero() },
        usual: new UsualTime(),
      }
      this.#batches.set(items, batches)
    }
    const { sums, usual } = batches
    addTo(sums.computeInput, times.computeInputNs)
    addTo(sums.computeInfer, times.computeInferNs)
    addTo(sums.computeOutput, times.computeOutputNs)
    const { medianMs } = usual
    const ms = times.computeInferNs / 1e6
    if (!usual.add(ms)) return
    this.slowRuns += 1
    this.onSlowRun?.({ items, ms, medianMs, shapes: times.shapes })
  }

  recordFailure(reason: FailureReason, requestNs: number): void {
    this.failures[reason] += 1
    this.#add('fail', requestNs)
  }

  /** A request was answered by the response cache, without a run. @param lookupNs - of the time that the request took. */
  recordCacheHit(lookupNs: number, requestNs = lookupNs): void {
    this.#lastInferenceMs = wallMs()
    this.#add('success', requestNs)
    this.#add('queue', 0)
    this.#add('cache_hit', lookupNs)
    this.histograms.request.observe(requestNs)
  }

  /** The response cache was asked in vain. @param ns - for the look-up and for keeping the answer; the request took so much longer. */
  recordCacheMiss(ns: number): void {
    this.#add('cache_miss', ns)
    this.inference.success.ns += Math.max(0, Math.round(ns))
  }

  statistics(memory: ModelStatistics['memory'] = []): ModelStatistics {
    return {
      name: this.model,
      version: this.version,
      lastInferenceMs: this.#lastInferenceMs,
      inferenceCount: this.inferenceCount,
      executionCount: this.executionCount,
      inference: structuredClone(this.inference),
      batches: this.#batchStatistics(),
      memory,
    }
  }

  #batchStatistics(): readonly BatchStatistics[] {
    return [...this.#batches]
      .sort(([a], [b]) => a - b)
      .map(([batchSize, { sums }]) => ({ batchSize, ...structuredClone(sums) }))
  }

  #add(name: DurationName, ns: number): void {
    addTo(this.inference[name], ns)
  }
}

function zero(): Sum {
  return { count: 0, ns: 0 }
}

function addTo(sum: Sum, ns: number): void {
  sum.count += 1
  sum.ns += Math.max(0, Math.round(ns))
}
