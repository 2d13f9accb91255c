import type { OptimizeReport, RatioSpread } from '../tools/optimize/optimize-report.js'
import { configurationText } from '../tools/optimize/search-space.js'
import { table } from './table.js'

/** What a search found, for people. */
export function optimizeTables({ best, steps, space, baseline, forms }: OptimizeReport): string {
  const parts = [
    table(
      ['FORM', 'MB', 'ACCURACY', 'TRIED'],
      forms.map(({ name, fileBytes, accuracy, leftOut }) => [
        name,
        (fileBytes / 1e6).toFixed(1),
        accuracy === undefined ? '-' : accuracy.value.toFixed(4),
        leftOut ?? 'yes',
      ]),
    ),
  ]
  if (steps.length > 0)
    parts.push(
      table(
        ['STEP', 'INFERENCES/S', 'GAINED', 'OVER BASELINE', 'P99 MS', 'CONFIGURATION'],
        steps.map(({ name, measured, throughputRatio }, index) => [
          name,
          measured.worth.perSecond.toFixed(1),
          index === 0 ? '-' : `${throughputRatio.toFixed(2)} x`,
          times(measured.throughput),
          measured.worth.p99Ms.toFixed(1),
          index === 0 ? configurationText(baseline) : configurationText(measured.configuration, space),
        ]),
      ),
    )
  if (best !== undefined)
    parts.push(
      `best: ${configurationText(best.configuration, space)}\n` +
        `      ${best.worth.perSecond.toFixed(1)} inferences/s, ${times(best.throughput)} the baseline; p99 ${best.worth.p99Ms.toFixed(1)} ms`,
    )
  return parts.join('\n\n')
}

function times({ median, min, max }: RatioSpread): string {
  return `${median.toFixed(2)} x (${min.toFixed(2)}-${max.toFixed(2)})`
}
