import { QuantileWindow } from '../../cameras/windows.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import { nowMs } from '../../lifecycle/clock.js'

/** Results of a camera that are kept. */
const mostValues = 3_000
/** A p99 of few results is that of the worst one: so little more says nothing. */
const leastMoreMs = 5

/** Capture to publish of each camera for a while. */
export class TrialLatency {
  readonly #windows = new Map<string, QuantileWindow>()
  readonly #sinceMs: number
  #isOver = false

  /** @param inMs - frames that arrive earlier are left out. */
  constructor(inMs = 0) {
    this.#sinceMs = nowMs() + inMs
  }

  add({ cameraId, arrivedMs }: Pick<EngineResult, 'cameraId' | 'arrivedMs'>, latencyMs: number): void {
    if (this.#isOver || arrivedMs < this.#sinceMs) return
    const window = this.#windows.get(cameraId) ?? new QuantileWindow(mostValues)
    this.#windows.set(cameraId, window)
    window.add(latencyMs)
  }

  /** No result counts any more. */
  end(): void {
    this.#isOver = true
  }

  /** p99 by camera. */
  get p99Ms(): ReadonlyMap<string, number> {
    return new Map(
      [...this.#windows].flatMap(([cameraId, window]) => {
        const quantiles = window.quantiles(0.99)
        return quantiles === undefined ? [] : [[cameraId, quantiles[0]] as const]
      }),
    )
  }
}

/** p99 of the camera that has the worst, before and in a trial; `null` where there is none. */
export type P99Pair = Readonly<{ before: number | null; after: number | null }>

/** Only cameras count that had results before. */
export function worstOf(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): P99Pair {
  const same = [...after].filter(([cameraId]) => before.has(cameraId)).map(([, valueMs]) => valueMs)
  return { before: worst([...before.values()]), after: worst(same) }
}

/** Why an ensemble is too slow; `undefined` where it is not, or nothing tells. */
export function latencyFault({ before, after }: P99Pair, maxRatio: number): string | undefined {
  if (before === null) return undefined
  if (after === null) return 'no camera that was live had a result in the trial'
  if (after <= before * maxRatio || after - before <= leastMoreMs) return undefined
  return `p99 of capture to publish went from ${before} ms to ${after} ms, and maxP99Ratio is ${maxRatio}`
}

function worst(valuesMs: readonly number[]): number | null {
  return valuesMs.length === 0 ? null : Math.round(Math.max(...valuesMs) * 100) / 100
}
