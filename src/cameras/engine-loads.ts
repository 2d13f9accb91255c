import type { EngineResult } from './engine-report.js'
import type { EnginePlace } from './spread.js'

/** Of the newest run in the mean of an engine. */
const weight = 0.05

type Load = { isOpen: boolean; msPerFrame: number | undefined; instances: number }

/** How busy frames make each engine, by its runs. */
export class EngineLoads {
  readonly #loads: readonly Load[]

  /** @param isMeasured - engines differ, as they run on several GPUs; else they are alike, and cameras are only counted. */
  constructor(
    engines: number,
    readonly isMeasured: boolean,
  ) {
    this.#loads = Array.from({ length: engines }, () => ({
      isOpen: true,
      msPerFrame: undefined,
      instances: 1,
    }))
  }

  get places(): readonly EnginePlace[] {
    return this.#loads
  }

  /** The engine runs, so far unmeasured. */
  runs(engine: number, instances: number): void {
    if (!this.isMeasured) return
    Object.assign(this.#loads[engine] ?? {}, { isOpen: true, msPerFrame: undefined, instances })
  }

  /** The engine takes no cameras until it runs again. */
  left(engine: number): void {
    const load = this.#loads[engine]
    if (load !== undefined) load.isOpen = false
  }

  ran(engine: number, { timingsMs, batchSize }: NonNullable<EngineResult['run']>): void {
    const load = this.#loads[engine]
    if (!this.isMeasured || load === undefined) return
    const ms = timingsMs.infer / Math.max(1, batchSize) + timingsMs.postprocess
    load.msPerFrame = load.msPerFrame === undefined ? ms : load.msPerFrame * (1 - weight) + ms * weight
  }
}
