import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { EngineBeat } from '../engine/protocol.js'

type Metrics = Pick<
  ServiceMetrics,
  | 'engineUp'
  | 'engineRestarts'
  | 'engineInstanceExits'
  | 'engineRss'
  | 'engineCpu'
  | 'engineLoopP99'
  | 'stepFailures'
>

/** How engines stand, in the metrics of the service, which outlast them. */
export class EngineMetrics {
  /** Of each, when it last told. */
  readonly #cpuSeconds = new Map<number, number>()

  constructor(readonly metrics: Metrics) {}

  /** Counters that begin at 1 would hide the first restart or exit from `increase()`. */
  begins(index: number): void {
    const engine = String(index)
    this.metrics.engineRestarts.inc({ engine }, 0)
    this.metrics.engineInstanceExits.inc({ engine }, 0)
  }

  ready(index: number): void {
    this.metrics.engineUp.set({ engine: String(index) }, 1)
  }

  gone(index: number): void {
    const engine = String(index)
    this.metrics.engineUp.set({ engine }, 0)
    this.metrics.engineRestarts.inc({ engine })
    this.#cpuSeconds.delete(index)
  }

  instanceExited(index: number): void {
    this.metrics.engineInstanceExits.inc({ engine: String(index) })
  }

  /** @returns CPU seconds since it told before. */
  beat(index: number, { rssBytes, loopP99Ms, cpuSeconds, stepFailures }: EngineBeat): number {
    const engine = String(index)
    const { metrics } = this
    for (const { step, failed, late } of stepFailures) {
      metrics.stepFailures.inc({ step, reason: 'failed' }, failed)
      metrics.stepFailures.inc({ step, reason: 'late' }, late)
    }
    metrics.engineRss.set({ engine }, rssBytes)
    metrics.engineLoopP99.set({ engine }, loopP99Ms / 1_000)
    const used = Math.max(0, cpuSeconds - (this.#cpuSeconds.get(index) ?? 0))
    metrics.engineCpu.inc({ engine }, used)
    this.#cpuSeconds.set(index, cpuSeconds)
    return used
  }
}
