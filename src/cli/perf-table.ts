import type { ReportComparison } from '../tools/perf/compare-reports.js'
import type { LevelResult } from '../tools/perf/measure-level.js'
import type { LoadKind } from '../tools/perf/perf-report.js'
import { table } from './table.js'
import { styled } from './terminal.js'

/** Widths that hold what is usual: rows are printed when they are there, before the next one is known. */
const columns = [
  ['inferences/s', 13],
  ['p50 ms', 9],
  ['p90 ms', 9],
  ['p95 ms', 9],
  ['p99 ms', 9],
  ['server ms', 10],
  ['errors', 7],
] as const

const firstWidth = 12

/** The first line of the table of a run. */
export function levelHead(kind: LoadKind, color: boolean): string {
  const first = { concurrency: 'CONCURRENCY', rate: 'REQUESTS/S', cameras: 'CAMERAS' }[kind]
  const cells = columns.map(([name, width]) => name.toUpperCase().padStart(width))
  return styled(first.padEnd(firstWidth) + cells.join(''), 'bold', color)
}

/** A level as a line below it. */
export function levelLine({
  level,
  inferencesPerSecond,
  latencyUs,
  splitUs,
  errors,
  ...more
}: LevelResult): string {
  const ms = (us: number) => (us / 1e3).toFixed(us < 1e5 ? 2 : 0)
  const inServer =
    splitUs.server === undefined ? '-' : ms(Object.values(splitUs.server).reduce((sum, us) => sum + us, 0))
  const cells = [
    inferencesPerSecond.toFixed(1),
    ...[latencyUs.p50, latencyUs.p90, latencyUs.p95, latencyUs.p99].map(ms),
    inServer,
    String(errors),
  ]
  const remarks = [
    ...(more.cutShort ? ['cut short'] : more.steady ? [] : ['not steady']),
    ...(more.dropped === undefined ? [] : [`${more.dropped} dropped`]),
  ]
  const padded = cells.map((cell, index) => cell.padStart(columns[index]![1]))
  return `${String(level).padEnd(firstWidth)}${padded.join('')}${remarks.length > 0 ? `  ${remarks.join(', ')}` : ''}`
}

/** Two runs side by side; ratios are of the second to the first. */
export function compareTable({ kind, names, levels }: ReportComparison, color: boolean): string {
  const head = [kind, 'inferences/s', 'ratio', 'p50 ms', 'ratio', 'p99 ms', 'ratio', '']
  const pair = (values: readonly [number, number], scale: number, digits: number) =>
    values.map((value) => (value * scale).toFixed(digits)).join(' -> ')
  const rows = levels.map((one) => [
    String(one.level),
    pair(one.inferencesPerSecond, 1, 1),
    one.throughputRatio.toFixed(2),
    pair(one.p50Us, 1e-3, 2),
    one.p50Ratio.toFixed(2),
    pair(one.p99Us, 1e-3, 2),
    one.p99Ratio.toFixed(2),
    one.steady ? '' : 'not steady',
  ])
  const bold = head.map((word) => styled(word.toUpperCase(), 'bold', color))
  return `${names[0]} -> ${names[1]}\n${table(bold, rows)}`
}
