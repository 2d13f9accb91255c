import type { OptimizeReport } from './optimize-report.js'
import { dimensions } from './search-space.js'

/** A row for each configuration that was tried, as spreadsheets read them. */
export function optimizeCsv({ tried }: Pick<OptimizeReport, 'tried'>): string {
  const columns = [
    ...dimensions,
    'gain',
    'inferencesPerSecond',
    'p50Ms',
    'p99Ms',
    'atOnce',
    'cores',
    'peakMiB',
    'steady',
    'cutShort',
    'broken',
  ]
  const rows = tried.map(({ configuration, worth, gain, reason = '' }) => [
    ...dimensions.map((name) => configuration[name]),
    number(gain),
    number(worth?.perSecond),
    number(worth?.p50Ms),
    number(worth?.p99Ms),
    number(worth?.level),
    number(worth?.cores),
    worth === undefined ? '' : Math.round(worth.peakBytes / 1024 ** 2),
    worth?.steady ?? '',
    worth?.cutShort ?? '',
    worth?.broken.join('; ') ?? reason,
  ])
  return [columns, ...rows].map((cells) => `${cells.map(cell).join(',')}\n`).join('')
}

function number(value: number | undefined): number | string {
  return value === undefined ? '' : Number(value.toPrecision(6))
}

function cell(value: string | number | boolean): string {
  const text = String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
