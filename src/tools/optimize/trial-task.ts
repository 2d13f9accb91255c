import type { ExecutionProvider } from '../../config/inference.js'
import type { ErrorRecord } from '../../errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import type { LevelResult } from '../perf/measure-level.js'

/** How requests come in a trial. */
export type TrialLoad =
  /** So many under way at all times. */
  | Readonly<{ kind: 'concurrency'; levels: readonly number[] }>
  /** As pictures of cameras came, which is gone through again and again. */
  | Readonly<{ kind: 'trace'; gapsMs: readonly number[] }>

/** What a process of a trial is told, as a line of JSON on its input. */
export type TrialTask = Readonly<{
  name: string
  /** `<model>/<version>`, absolute. */
  versionDir: string
  config: ModelConfig
  provider: ExecutionProvider
  load: TrialLoad
  /** Of requests, as `gantry perf --input-data` takes it. */
  inputData: string
  /** Sizes of free inputs without the batch dimension, by name. */
  shapes: Readonly<Record<string, readonly number[]>>
  seed: number
  windowMs: number
  mostWindows: number
  /** Inferences per second under which its first level ends early. */
  stopBelow?: number
  /** p99 beyond which further levels are not measured. */
  limitMs?: number
}>

/** What it answers, a line of JSON each, in this order. */
export type TrialAnswer =
  | Readonly<{ kind: 'loaded'; loadMs: number }>
  | Readonly<{ kind: 'level'; result: LevelResult }>
  | Readonly<{ kind: 'done'; peakBytes: number }>
  | Readonly<{ kind: 'failed'; error: ErrorRecord }>
