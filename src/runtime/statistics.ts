/** What the shapes of a run are to the session that ran it: it had not seen them, or others in the run before. */
export type RunShapes = 'first' | 'changed'

/** How long a run took, apart by what it did. */
export type ExecutionTimes = Readonly<{
  computeInputNs: number
  computeInferNs: number
  computeOutputNs: number
  /** Bytes of tensors that were copied for this batch. */
  copiedBytes?: number
  /** Absent: those of the run before, or nobody knows. */
  shapes?: RunShapes | undefined
}>

/** How often something was done and how long it took in all. */
export type Duration = Readonly<{ count: number; ns: number }>

export const requestDurations = [
  'success',
  'fail',
  'queue',
  'compute_input',
  'compute_infer',
  'compute_output',
  'cache_hit',
  'cache_miss',
] as const

export type BatchStatistics = Readonly<{
  batchSize: number
  computeInput: Duration
  computeInfer: Duration
  computeOutput: Duration
}>

/** Triton's statistics of one version of a model, since it was loaded. */
export type ModelStatistics = Readonly<{
  name: string
  version: string
  /** Milliseconds since 1970; 0 before the first. */
  lastInferenceMs: number
  /** Items inferred, cache hits left out. */
  inferenceCount: number
  /** Runs, cache hits left out. */
  executionCount: number
  inference: Readonly<Record<(typeof requestDurations)[number], Duration>>
  batches: readonly BatchStatistics[]
  memory: readonly Readonly<{ type: 'CPU' | 'CPU_PINNED' | 'GPU'; id: number; bytes: number }>[]
}>

/** Upper bounds in seconds, from a tiny model to one that is stuck. */
export const bucketSeconds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
] as const

const bucketNs = bucketSeconds.map((seconds) => seconds * 1e9)

/** Counts durations by {@link bucketSeconds}; cheap enough for every request. */
export class DurationHistogram {
  /** Not cumulative; the last is for what is over all bounds. */
  readonly counts: number[] = Array.from({ length: bucketNs.length + 1 }, () => 0)
  sumNs = 0

  observe(ns: number): void {
    let index = 0
    while (index < bucketNs.length && ns > bucketNs[index]!) index++
    this.counts[index]! += 1
    this.sumNs += ns
  }
}

/** Stages of a request, each with a histogram. */
export const stages = ['request', 'queue', 'compute_input', 'compute_infer', 'compute_output'] as const
export type Stage = (typeof stages)[number]
