import { Registry } from 'prom-client'
import { CollectedCounter, CollectedGauge } from './collected-metrics.js'
import { metricsText } from './metrics-text.js'

/** A graphics card with its figures; `null` is what its driver does not tell, or not now. */
export type GpuFigures = Readonly<{
  /** As the driver counts. */
  index: number
  /** As in `gpu_uuid` of its metrics. */
  uuid: string
  name: string
  /** Share of the last moment in which it had work, 0-1. */
  utilization: number | null
  memoryUsedBytes: number | null
  memoryTotalBytes: number | null
  powerWatts: number | null
  powerLimitWatts: number | null
  /** Since the service began, by its power. */
  energyJoules: number | null
  /** Why figures are missing that there were, for people; empty when all is well. */
  reason: string
}>

type Value = (gpu: GpuFigures) => number | null

const gauges: Readonly<Record<string, readonly [help: string, value: Value]>> = {
  nv_gpu_utilization: ['Share of the time in which the GPU had work, 0-1.', (gpu) => gpu.utilization],
  nv_gpu_memory_total_bytes: ['Memory of the GPU.', (gpu) => gpu.memoryTotalBytes],
  nv_gpu_memory_used_bytes: ['Memory of the GPU in use, by whatever program.', (gpu) => gpu.memoryUsedBytes],
  nv_gpu_power_usage: ['Power of the GPU, in watts.', (gpu) => gpu.powerWatts],
  nv_gpu_power_limit: ['Most power the GPU may take, in watts.', (gpu) => gpu.powerLimitWatts],
  gantry_gpu_up: ['1 while the driver tells the figures of the GPU.', (gpu) => (gpu.reason === '' ? 1 : 0)],
}

/**
 * Metrics of graphics cards, under the names of Triton and with its one label `gpu_uuid`: perf_analyzer reads no line with another. They
 * are of the machine, whoever runs models on it, and so each stands on the page once. What is not known is no series.
 */
export class GpuMetrics {
  readonly registry = new Registry()

  constructor(readonly gpus: () => readonly GpuFigures[]) {
    const { registry } = this
    const samples = (value: Value) => () =>
      gpus().flatMap((gpu) => {
        const current = value(gpu)
        return current === null ? [] : [{ labels: { gpu_uuid: gpu.uuid }, value: current }]
      })
    for (const [name, [help, value]] of Object.entries(gauges))
      new CollectedGauge({ name, help, registry }, samples(value))
    new CollectedCounter(
      {
        name: 'nv_energy_consumption',
        help: 'Energy the GPU has taken since the service began, by its power, in joules.',
        registry,
      },
      samples((gpu) => gpu.energyJoules),
    )
  }

  /** Prometheus text format, in pieces; none where there is no card. */
  async *text(): AsyncGenerator<string, void> {
    if (this.gpus().length > 0) yield* metricsText(this.registry)
  }
}
