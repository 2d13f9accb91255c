import { Registry } from 'prom-client'
import { metricLabel } from '../../repository/config-faults/metric-faults.js'
import { metricsText } from '../../metrics/metrics-text.js'
import { copiedBytes } from '../../tensors/tensor-buffers.js'
import type { CountedStatistics } from '../../runtime/counted-statistics.js'
import { bucketSeconds, type Stage, stages } from '../../runtime/statistics.js'
import type { FailureReason } from '../../tensors/serving-error.js'
import {
  CollectedCounter,
  CollectedGauge,
  CollectedHistogram,
  type Labels,
  type Sample,
} from '../../metrics/collected-metrics.js'
import { CpuUsage } from './cpu-usage.js'

type Value = (recorder: CountedStatistics) => number | undefined

const failureReasons = [
  'REJECTED',
  'CANCELED',
  'BACKEND',
  'OTHER',
] as const satisfies readonly FailureReason[]

/** Counters of Triton, by name. Those that give `undefined` are left out. */
const counters: Readonly<Record<string, readonly [help: string, value: Value]>> = {
  nv_inference_request_success: ['Requests answered well.', (r) => r.inference.success.count],
  nv_inference_count: ['Items inferred, cache hits left out.', (r) => r.inferenceCount],
  nv_inference_exec_count: ['Runs, cache hits left out.', (r) => r.executionCount],
  nv_inference_request_duration_us: [
    'Time of requests from their arrival to their answer, in us.',
    (r) => microseconds(r.inference.success.ns),
  ],
  nv_inference_queue_duration_us: [
    'Time requests waited for an instance, in us.',
    (r) => microseconds(r.inference.queue.ns),
  ],
  nv_inference_compute_input_duration_us: [
    'Time spent on inputs, in us.',
    (r) => microseconds(r.inference.compute_input.ns),
  ],
  nv_inference_compute_infer_duration_us: [
    'Time of the model itself, in us.',
    (r) => microseconds(r.inference.compute_infer.ns),
  ],
  nv_inference_compute_output_duration_us: [
    'Time spent on outputs, in us.',
    (r) => microseconds(r.inference.compute_output.ns),
  ],
  nv_cache_num_hits_per_model: [
    'Requests answered by the response cache.',
    (r) => ifCached(r, r.inference.cache_hit.count),
  ],
  nv_cache_num_misses_per_model: [
    'Requests that the response cache did not know.',
    (r) => ifCached(r, r.inference.cache_miss.count),
  ],
  nv_cache_hit_duration_per_model: [
    'Time of cache hits, in us.',
    (r) => ifCached(r, microseconds(r.inference.cache_hit.ns)),
  ],
  nv_cache_miss_duration_per_model: [
    'Time of cache misses, in us.',
    (r) => ifCached(r, microseconds(r.inference.cache_miss.ns)),
  ],
  gantry_model_copied_bytes_total: [
    'Bytes of input tensors copied between a request and the model.',
    (r) => r.copiedBytes,
  ],
  gantry_model_slow_runs_total: [
    'Runs that took ten times the median of their size, or more.',
    (r) => r.slowRuns,
  ],
}

const histograms: Readonly<Record<Stage, string>> = {
  request: 'Time of a request from its arrival to its answer.',
  queue: 'Time a request waited for an instance.',
  compute_input: 'Time spent on the inputs of the run that a request was in.',
  compute_infer: 'Time of the model in the run that a request was in.',
  compute_output: 'Time spent on the outputs of the run that a request was in.',
}

/** A model and what was counted of it, for all models there are now. */
type Counts = () => readonly CountedStatistics[]

/**
 * Metrics of the model server: Triton's names, and a histogram for every stage.
 *
 * Values live in the recorders of the models that are loaded, and are read when somebody asks; a model that is removed leaves no
 * series behind.
 */
export class ServingMetrics {
  readonly registry = new Registry()

  /** @param counts - of the models that are loaded now, one for a version of a model. */
  constructor(counts: Counts, cpu: CpuUsage = new CpuUsage()) {
    addModelMetrics(this.registry, counts)
    new CollectedCounter(
      {
        name: 'gantry_model_server_copied_bytes_total',
        help: 'Tensor bytes copied between socket and model, in requests and answers of all models.',
        registry: this.registry,
      },
      () => [{ labels: {}, value: copiedBytes() }],
    )
    addMachineMetrics(this.registry, cpu)
  }

  /** Prometheus text format. */
  text(): Promise<string> {
    return textOf(this.registry)
  }
}

/** The metrics of models alone, in Prometheus text format. */
export function modelMetricsText(counts: readonly CountedStatistics[]): Promise<string> {
  const registry = new Registry()
  addModelMetrics(registry, () => counts)
  return textOf(registry)
}

async function textOf(registry: Registry): Promise<string> {
  let text = ''
  for await (const piece of metricsText(registry)) text += piece
  return text
}

function addModelMetrics(registry: Registry, counts: Counts): void {
  const perModel = (value: Value) => () =>
    counts().flatMap((each) => {
      const current = value(each)
      return current === undefined ? [] : [{ labels: labelsOf(each), value: current }]
    })
  for (const [name, [help, value]] of Object.entries(counters))
    new CollectedCounter({ name, help, registry }, perModel(value))
  new CollectedCounter(
    { name: 'nv_inference_request_failure', help: 'Requests that failed, by reason.', registry },
    () => counts().flatMap(failureSamples),
  )
  new CollectedGauge(
    { name: 'nv_inference_pending_request_count', help: 'Requests that wait for an instance.', registry },
    perModel(({ pending }) => pending),
  )
  new CollectedGauge(
    { name: 'nv_model_load_duration_secs', help: 'Time it took to load the model, in seconds.', registry },
    perModel(({ loadSeconds }) => loadSeconds),
  )
  new CollectedGauge(
    {
      name: 'gantry_model_batch_memory_bytes',
      help: 'Memory of the GPU that an instance took for batches of a size, measured once where the driver tells.',
      registry,
    },
    () => counts().flatMap(memorySamples),
  )
  for (const stage of stages) {
    const name = `gantry_model_${stage}_seconds`
    new CollectedHistogram({ name, help: histograms[stage], registry }, () =>
      counts().flatMap((each) => histogramSamples(name, labelsOf(each), each.histograms[stage])),
    )
  }
}

function failureSamples(counts: CountedStatistics): readonly Sample[] {
  return failureReasons.map((reason) => ({
    labels: labelsOf(counts, { reason }),
    value: counts.failures[reason],
  }))
}

function memorySamples(counts: CountedStatistics): readonly Sample[] {
  return counts.sizes.flatMap(({ size, memoryBytes }) =>
    memoryBytes === undefined
      ? []
      : [{ labels: labelsOf(counts, { batch_size: String(size) }), value: memoryBytes }],
  )
}

function addMachineMetrics(registry: Registry, cpu: CpuUsage): void {
  const gauge = (name: string, help: string, value: () => number) =>
    new CollectedGauge({ name, help, registry }, () => [{ labels: {}, value: value() }])
  gauge('nv_cpu_utilization', 'Share of the processors in use since the last time it was asked, 0-1.', () =>
    cpu.utilization(),
  )
  gauge('nv_cpu_memory_total_bytes', 'Memory of the machine.', () => cpu.memoryTotalBytes())
  gauge('nv_cpu_memory_used_bytes', 'Memory of the machine in use.', () => cpu.memoryUsedBytes())
}

/** Sorted by name, as Triton prints them. Tags of the configuration do not replace labels of the server. */
function labelsOf({ model, version, metricTags }: CountedStatistics, more: Labels = {}): Labels {
  const tags = Object.entries(metricTags).map(([name, value]) => [metricLabel(name), value])
  const labels = { ...(Object.fromEntries(tags) as Labels), model, version, ...more }
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function histogramSamples(
  name: string,
  labels: Labels,
  histogram: CountedStatistics['histograms'][Stage],
): readonly Sample[] {
  let count = 0
  const buckets = histogram.counts.map((inBucket, index): Sample => {
    count += inBucket
    const le = String(bucketSeconds[index] ?? '+Inf')
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: histogram.sumNs / 1e9 },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

function microseconds(ns: number): number {
  return Math.round(ns / 1e3)
}

function ifCached(recorder: CountedStatistics, value: number): number | undefined {
  return recorder.inference.cache_hit.count + recorder.inference.cache_miss.count === 0 ? undefined : value
}
