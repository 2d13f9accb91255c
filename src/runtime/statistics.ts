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
