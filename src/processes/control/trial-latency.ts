import { QuantileWindow } from '../../cameras/windows.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import { nowMs } from '../../lifecycle/clock.js'

/** Results of a camera that are kept. */
const mostValues = 3_000
/** A p99 of few results is that of the worst one: so little more says nothing. */
const leastMoreMs = 5

/** Capture to publish of each camera while another ensemble is tried, beside what it was before. */
export class TrialLatency {
  readonly #windows = new Map<string, QuantileWindow>()
  readonly #sinceMs = nowMs()

  /** @param beforeMs - p99 of the cameras that were live before; others do not count. */
  constructor(readonly beforeMs: ReadonlyMap<string, number>) {}

  /** Frames that arrived before the trial are of the ensemble before. */
  add({ cameraId, arrivedMs }: Pick<EngineResult, 'cameraId' | 'arrivedMs'>, latencyMs: number): void {
    if (arrivedMs < this.#sinceMs || !this.beforeMs.has(cameraId)) return
    const window = this.#windows.get(cameraId) ?? new QuantileWindow(mostValues)
    this.#windows.set(cameraId, window)
    window.add(latencyMs)
  }

  /** p99 of the camera that has the worst; `null` without results. */
  get figures(): Readonly<{ before: number | null; after: number | null }> {
    const after = [...this.#windows.values()].flatMap((window) => window.quantiles(0.99) ?? [])
    return { before: worst([...this.beforeMs.values()]), after: worst(after) }
  }

  /** Why the ensemble is too slow; `undefined` where it is not, or nothing tells. */
  fault(maxRatio: number): string | undefined {
    const { before, after } = this.figures
    if (before === null) return undefined
    if (after === null) return 'no camera that was live had a result in the trial'
    if (after <= before * maxRatio || after - before <= leastMoreMs) return undefined
    return `p99 of capture to publish went from ${before} ms to ${after} ms, and maxP99Ratio is ${maxRatio}`
  }
}

function worst(valuesMs: readonly number[]): number | null {
  return valuesMs.length === 0 ? null : Math.round(Math.max(...valuesMs) * 100) / 100
}
