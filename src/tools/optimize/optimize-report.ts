import type { LevelResult } from '../perf/measure-level.js'
import type { FormAccuracy, AccuracyMeasure } from './form-accuracy.js'
import type { TrialLoadKind, TrialLimits, Objective, Worth } from './objective.js'
import type { Roofline } from './roofline.js'
import type { Configuration, SearchSpace } from './search-space.js'

/** A configuration that was tried, and what it is worth; without a worth it cannot be used. */
export type TriedConfiguration = Readonly<{
  configuration: Configuration
  worth: Worth | undefined
  /** Why it cannot be used. */
  reason?: string
  /** Of the objective over that of the baseline at about the same time; 1 is as good. */
  gain: number | undefined
}>

/** A form of the model and its accuracy. */
export type FormReport = Readonly<{
  name: string
  fileBytes: number
  accuracy?: FormAccuracy
  /** Why it was not tried. */
  leftOut?: string
}>

/** A configuration that was measured several times, in turn with others. */
export type RepeatedConfiguration = Readonly<{
  configuration: Configuration
  /** Medians over the turns. */
  worth: Worth
  /** Median, least and largest ratio of its throughput to that of the baseline in the same turn. */
  throughput: RatioSpread
  p99: RatioSpread
  /** The same of the objective. */
  gain: RatioSpread
}>

export type RatioSpread = Readonly<{ median: number; min: number; max: number }>

/** A step from the baseline to the best, and what it gained over the step before. */
export type GainStep = Readonly<{ name: string; measured: RepeatedConfiguration; throughputRatio: number }>

/** A configuration over several loads. */
export type LoadCurve = Readonly<{
  name: string
  configuration: Configuration
  levels: readonly Pick<LevelResult, 'level' | 'inferencesPerSecond' | 'latencyUs'>[]
}>

/** All that a search found, as programs read it. */
export type OptimizeReport = Readonly<{
  gantryOptimize: 1
  at: string
  model: string
  /** Of this machine. */
  machine: Readonly<{ processor: string; cores: number; onnxRuntime: string; vnni: boolean | undefined }>
  objective: Objective
  limits: TrialLimits & Readonly<{ map?: number; mapDrop?: number; agreement?: number }>
  load: Readonly<{ kind: TrialLoadKind; perSecond?: number; cameras?: number }>
  accuracyBy?: Readonly<{ kind: AccuracyMeasure['kind']; of: string }>
  space: SearchSpace
  /** Configurations that there are. */
  configurations: number
  exhaustive: boolean
  baseline: Configuration
  forms: readonly FormReport[]
  tried: readonly TriedConfiguration[]
  finalists: readonly RepeatedConfiguration[]
  /** Absent where nothing keeps the limits, or it was ended before. */
  best?: RepeatedConfiguration
  steps: readonly GainStep[]
  curves: readonly LoadCurve[]
  roofline?: Roofline
  notes: readonly string[]
  interrupted: boolean
  seconds: number
  /** Its entry in a repository, once it is written. */
  result?: Readonly<{ name: string; path: string; ensemble?: string }>
  /** What makes the same search. */
  command: string
}>
