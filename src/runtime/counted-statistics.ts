import type { SizeCost } from './batch-sizes.js'
import type { FailureReason } from '../tensors/serving-error.js'
import type { Duration, requestDurations, Stage } from './statistics.js'

/** What was counted of one version of a model. A `StatisticsRecorder` is one, and so is what it says in a message. */
export type CountedStatistics = Readonly<{
  model: string
  version: string
  /** Labels that the configuration adds to the metrics of the model. */
  metricTags: Readonly<Record<string, string>>
  inference: Readonly<Record<(typeof requestDurations)[number], Duration>>
  inferenceCount: number
  executionCount: number
  failures: Readonly<Record<FailureReason, number>>
  pending: number
  copiedBytes: number
  /** Runs that took ten times the median of their size, or more. */
  slowRuns: number
  loadSeconds: number
  /** Of batches, where each has a session of its own: those that are warm. */
  sizes: readonly SizeCost[]
  histograms: Readonly<Record<Stage, Readonly<{ counts: readonly number[]; sumNs: number }>>>
}>

/** As it is now, and as a message can carry it. */
export function counted(statistics: CountedStatistics): CountedStatistics {
  const { model, version, metricTags, inferenceCount, executionCount, pending, copiedBytes } = statistics
  const { slowRuns, loadSeconds, sizes } = statistics
  const { inference, failures, histograms } = statistics
  return {
    model,
    version,
    metricTags,
    inference: structuredClone(inference),
    inferenceCount,
    executionCount,
    failures: { ...failures },
    pending,
    copiedBytes,
    slowRuns,
    loadSeconds,
    sizes: [...sizes],
    histograms: mapOf(histograms, ({ counts, sumNs }) => ({ counts: [...counts], sumNs })),
  }
}

/** Adds up what belongs to the same version of a model, in the order of the first of each; tags are those of the first. */
export function addUp(all: readonly CountedStatistics[]): readonly CountedStatistics[] {
  const sums: CountedStatistics[] = []
  for (const each of all) {
    const at = sums.findIndex((sum) => isSameModel(sum, each))
    if (at < 0) sums.push(each)
    else sums[at] = sumOf(sums[at]!, each)
  }
  return sums
}

export function isSameModel(
  a: Pick<CountedStatistics, 'model' | 'version'>,
  b: Pick<CountedStatistics, 'model' | 'version'>,
): boolean {
  return a.model === b.model && a.version === b.version
}

/** Whether counting began anew since: the model was loaded again, or its process started. */
export function beganAnew(before: CountedStatistics, now: CountedStatistics | undefined): boolean {
  if (now === undefined) return true
  const requests = ({ inference: { success, fail } }: CountedStatistics) => success.count + fail.count
  return requests(now) < requests(before) || now.executionCount < before.executionCount
}

function sumOf(a: CountedStatistics, b: CountedStatistics): CountedStatistics {
  return {
    model: a.model,
    version: a.version,
    metricTags: a.metricTags,
    inference: mapOf(a.inference, ({ count, ns }, name) => ({
      count: count + b.inference[name].count,
      ns: ns + b.inference[name].ns,
    })),
    inferenceCount: a.inferenceCount + b.inferenceCount,
    executionCount: a.executionCount + b.executionCount,
    failures: mapOf(a.failures, (count, reason) => count + b.failures[reason]),
    pending: a.pending + b.pending,
    copiedBytes: a.copiedBytes + b.copiedBytes,
    slowRuns: a.slowRuns + b.slowRuns,
    loadSeconds: Math.max(a.loadSeconds, b.loadSeconds),
    sizes: largestOf([...a.sizes, ...b.sizes]),
    histograms: mapOf(a.histograms, (histogram, stage) => histogramSum(histogram, b.histograms[stage])),
  }
}

/** Of each size the one that takes the most memory: processes have their own, on one card or several. */
function largestOf(sizes: readonly SizeCost[]): readonly SizeCost[] {
  const bytes = ({ memoryBytes = 0 }: SizeCost) => memoryBytes
  const bySize = new Map<number, SizeCost>()
  for (const each of sizes) {
    const known = bySize.get(each.size)
    if (known === undefined || bytes(each) > bytes(known)) bySize.set(each.size, each)
  }
  return [...bySize.values()].sort((a, b) => a.size - b.size)
}

type Histogram = CountedStatistics['histograms'][Stage]

function histogramSum(a: Histogram, b: Histogram): Histogram {
  return { counts: a.counts.map((count, index) => count + b.counts[index]!), sumNs: a.sumNs + b.sumNs }
}

function mapOf<K extends string, V, W>(
  of: Readonly<Record<K, V>>,
  to: (value: V, key: K) => W,
): Record<K, W> {
  return Object.fromEntries(
    (Object.entries(of) as [K, V][]).map(([key, value]) => [key, to(value, key)]),
  ) as Record<K, W>
}
