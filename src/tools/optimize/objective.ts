import type { LevelResult } from '../perf/measure-level.js'
import type { TrialResult } from './trial.js'

/** What is made as good as it can be. */
export const objectives = ['throughput', 'latency', 'weighted'] as const
export type Objective =
  | Readonly<{ kind: 'throughput' | 'latency' }>
  /** Throughput to the power of `weight` times 1 / p99 to the rest. */
  | Readonly<{ kind: 'weighted'; weight: number }>

/** What a configuration must keep. Absent: anything. */
export type TrialLimits = Readonly<{
  p99Ms?: number
  perSecond?: number
  memoryBytes?: number
}>

/** One level of a trial, as what the trial is worth. */
export type Worth = Readonly<{
  /** Requests under way, or requests per second of a trace. */
  level: number
  /** Inferences per second; of a trace what the processor could do of them, see {@link perSecondOf}. */
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** Processor time over time. */
  cores: number
  peakBytes: number
  /** The windows agreed. */
  steady: boolean
  /** It was far behind the best, and ended early. */
  cutShort: boolean
  /** TrialLimits that are not kept, for people; none where all are. */
  broken: readonly string[]
}>

/** How requests came. */
export type TrialLoadKind = 'concurrency' | 'trace'

/**
 * The level that is worth most by an objective among those that keep the limits; without such a one that which is nearest to them.
 *
 * @param cores - of the machine, for a trace.
 */
export function worthOf(
  { levels, peakBytes }: Extract<TrialResult, { ok: true }>,
  objective: Objective,
  limits: TrialLimits,
  load: TrialLoadKind,
  cores: number,
): Worth | undefined {
  const all = levels.map((level) => ofLevel(level, peakBytes, limits, load, cores))
  const kept = all.filter(({ broken }) => broken.length === 0)
  const some = kept.length > 0 ? kept : all
  return some.reduce<Worth | undefined>(
    (best, each) =>
      best === undefined || scoreOf(each, objective, limits) > scoreOf(best, objective, limits) ? each : best,
    undefined,
  )
}

function ofLevel(
  result: LevelResult,
  peakBytes: number,
  limits: TrialLimits,
  load: TrialLoadKind,
  cores: number,
): Worth {
  const { level, latencyUs, steady, cutShort, clientCores, errors, requests, firstError } = result
  const figures = {
    level,
    perSecond: perSecondOf(result, load, cores),
    p50Ms: latencyUs.p50 / 1e3,
    p99Ms: latencyUs.p99 / 1e3,
    cores: clientCores,
    peakBytes,
    steady,
    cutShort,
  }
  const failed = errors === 0 ? [] : [`${errors} of ${errors + requests} runs fail: ${firstError ?? ''}`]
  return { ...figures, broken: [...failed, ...brokenBy(figures, limits)] }
}

/** With a trace as many come as are recorded: what could be done is reckoned by the share of the processor that they took. */
function perSecondOf(
  { inferencesPerSecond, clientCores }: LevelResult,
  load: TrialLoadKind,
  cores: number,
): number {
  return load === 'concurrency'
    ? inferencesPerSecond
    : inferencesPerSecond / Math.max(0.01, clientCores / cores)
}

function brokenBy(
  { perSecond, p99Ms, peakBytes }: Pick<Worth, 'perSecond' | 'p99Ms' | 'peakBytes'>,
  limits: TrialLimits,
): readonly string[] {
  const mib = (bytes: number) => Math.round(bytes / 1024 ** 2)
  return [
    ...(p99Ms > (limits.p99Ms ?? Infinity) ? [`p99 ${p99Ms.toFixed(1)} ms of ${limits.p99Ms}`] : []),
    ...(perSecond < (limits.perSecond ?? 0) ? [`${perSecond.toFixed(1)}/s of ${limits.perSecond}`] : []),
    ...(peakBytes > (limits.memoryBytes ?? Infinity)
      ? [`${mib(peakBytes)} MiB of ${mib(limits.memoryBytes ?? 0)}`]
      : []),
  ]
}

/** Logarithm of the objective, the higher the better, less that of how far each limit is broken: what is near a limit may lead inside. */
export function scoreOf(worth: Worth, objective: Objective, limits: TrialLimits): number {
  const { p99Ms = worth.p99Ms, perSecond = worth.perSecond, memoryBytes = worth.peakBytes } = limits
  const beyond = [worth.p99Ms / p99Ms, perSecond / worth.perSecond, worth.peakBytes / memoryBytes]
  return objectiveOf(worth, objective) - beyond.reduce((sum, ratio) => sum + Math.log(Math.max(1, ratio)), 0)
}

/** Logarithm of the objective, limits or not. */
export function objectiveOf({ perSecond, p99Ms }: Worth, objective: Objective): number {
  switch (objective.kind) {
    case 'throughput':
      return Math.log(perSecond)
    case 'latency':
      return -Math.log(p99Ms)
    case 'weighted':
      return objective.weight * Math.log(perSecond) - (1 - objective.weight) * Math.log(p99Ms)
    default:
      return objective satisfies never
  }
}
