import { PerfSettingError } from './perf-errors.js'
import type { LoadKind, SavedReport } from './perf-report.js'

/** A level that both have. Ratios are of the second to the first. */
export type LevelComparison = Readonly<{
  level: number
  inferencesPerSecond: readonly [number, number]
  p50Us: readonly [number, number]
  p99Us: readonly [number, number]
  throughputRatio: number
  p50Ratio: number
  p99Ratio: number
  /** In both the windows agreed. */
  steady: boolean
}>

export type ReportComparison = Readonly<{
  kind: LoadKind
  names: readonly [string, string]
  levels: readonly LevelComparison[]
}>

/**
 * Two runs of the same kind of load, level by level.
 *
 * @throws PerfSettingError where they have no level in common
 */
export function compareReports(
  first: SavedReport,
  second: SavedReport,
  names: readonly [string, string],
): ReportComparison {
  const { kind } = first.load
  if (second.load.kind !== kind)
    throw new PerfSettingError(
      `${names[0]} is by ${kind} and ${names[1]} by ${second.load.kind}`,
      'Compare runs of the same kind of load.',
    )
  const levels = first.levels.flatMap((one) => {
    const other = second.levels.find(({ level }) => level === one.level)
    if (other === undefined) return []
    const [a, b] = [one.latencyUs, other.latencyUs]
    return [
      {
        level: one.level,
        inferencesPerSecond: [one.inferencesPerSecond, other.inferencesPerSecond] as const,
        p50Us: [a.p50, b.p50] as const,
        p99Us: [a.p99, b.p99] as const,
        throughputRatio: other.inferencesPerSecond / one.inferencesPerSecond,
        p50Ratio: b.p50 / a.p50,
        p99Ratio: b.p99 / a.p99,
        steady: one.steady && other.steady,
      },
    ]
  })
  if (levels.length === 0)
    throw new PerfSettingError(
      `${names[0]} and ${names[1]} have no ${kind} in common`,
      'Measure both over the same range.',
    )
  return { kind, names, levels }
}
