import type { GantryError } from '../../errors.js'
import type { LaneOutcome } from '../client/infer-lane.js'
import { Latencies } from './latencies.js'

/** What ended between two moments of a load. Times are milliseconds. */
export class MeasurementWindow {
  /** From when it was sent, or should have been, to the last byte of its answer. */
  readonly latencies = new Latencies()
  /** From when it should have been sent to when it was; of loads without such times all 0. */
  readonly lags = new Latencies()
  sendMs = 0
  receiveMs = 0
  errors = 0
  dropped = 0
  durationMs = 0
  firstError: GantryError | undefined

  add(fromMs: number, { sentMs, writtenMs, firstByteMs, receivedMs, error }: LaneOutcome): void {
    if (error !== undefined) {
      this.errors += 1
      this.firstError ??= error
      return
    }
    this.latencies.add(receivedMs - fromMs)
    this.lags.add(sentMs - fromMs)
    this.sendMs += writtenMs - sentMs
    this.receiveMs += receivedMs - firstByteMs
  }

  get requests(): number {
    return this.latencies.count
  }

  get perSecond(): number {
    return this.durationMs === 0 ? 0 : (this.requests / this.durationMs) * 1e3
  }
}

/** Several windows as one. */
export function mergedWindow(windows: readonly MeasurementWindow[]): MeasurementWindow {
  const merged = new MeasurementWindow()
  for (const window of windows) {
    merged.latencies.addAll(window.latencies)
    merged.lags.addAll(window.lags)
    merged.sendMs += window.sendMs
    merged.receiveMs += window.receiveMs
    merged.errors += window.errors
    merged.dropped += window.dropped
    merged.durationMs += window.durationMs
    merged.firstError ??= window.firstError
  }
  return merged
}

export type StabilityRule = Readonly<{
  /** Largest difference between windows, as a fraction: 0.1. */
  within: number
  /** 0..1: the quantile of latency that must be steady; undefined: the mean. */
  quantile: number | undefined
}>

/** Windows that must agree. */
export const steadyWindows = 3

/**
 * Whether the last three windows agree in throughput and latency: the largest is at most `within` above the smallest.
 *
 * @see triton-inference-server/perf_analyzer, InferenceProfiler::DetermineStability
 */
export function isSteady(
  figures: readonly Readonly<{ perSecond: number; latency: number }>[],
  within: number,
): boolean {
  const last = figures.slice(-steadyWindows)
  if (last.length < steadyWindows || last.some(({ perSecond }) => perSecond === 0)) return false
  const agree = (values: readonly number[]) => Math.max(...values) <= Math.min(...values) * (1 + within)
  return agree(last.map(({ perSecond }) => perSecond)) && agree(last.map(({ latency }) => latency))
}
