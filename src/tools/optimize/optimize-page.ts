import { type HtmlCell, htmlFacts, htmlTable, numberText } from '../report/html.js'
import { type ChartSeries, lineChart } from '../report/line-chart.js'
import { reportPage, type ReportSection } from '../report/report-page.js'
import type { OptimizeReport, RepeatedConfiguration, RatioSpread } from './optimize-report.js'
import { configurationText } from './search-space.js'

/** What a search found, as a page: curves, what each step gained, what bounds it, and everything that was tried. */
export function optimizePage(report: OptimizeReport): string {
  const { model, machine, at } = report
  const sections: ReportSection[] = [
    { title: 'Result', html: htmlFacts(resultFacts(report)) },
    curveSection(report),
    stepSection(report),
    ...(report.roofline === undefined ? [] : [roofSection(report)]),
    formSection(report),
    finalistSection(report),
    triedSection(report),
    { title: 'How it was measured', html: htmlFacts(methodFacts(report)) },
    ...(report.notes.length === 0
      ? []
      : [
          {
            title: 'Notes',
            html: htmlTable(
              ['note'],
              report.notes.map((note) => [note]),
            ),
          },
        ]),
  ]
  const subtitle = `${machine.processor}, ${machine.cores} cores, ONNX Runtime ${machine.onnxRuntime}, ${at}`
  return reportPage({ title: `${model}: the best way to run it here`, subtitle, sections })
}

function resultFacts(report: OptimizeReport): (readonly [string, HtmlCell])[] {
  const { best, baseline, space, result, interrupted } = report
  if (best === undefined)
    return [['best', interrupted ? 'none: it was ended before' : 'none keeps the limits']]
  return [
    ['best', configurationText(best.configuration, space)],
    ['inferences per second', numberText(best.worth.perSecond)],
    ['throughput over the baseline', times(best.throughput)],
    ['p99', `${numberText(best.worth.p99Ms)} ms, ${times(best.p99)} the baseline's`],
    ['memory of the process', `${Math.round(best.worth.peakBytes / 1024 ** 2)} MiB`],
    ['baseline', configurationText(baseline)],
    ...(result === undefined ? [] : ([['written to', result.path]] as const)),
    ['made again by', report.command],
  ]
}

function times({ median, min, max }: RatioSpread): string {
  return `${median.toFixed(2)} x (${min.toFixed(2)} to ${max.toFixed(2)})`
}

function curveSection({ curves, limits, roofline }: OptimizeReport): ReportSection {
  const series: ChartSeries[] = curves.map(({ name, levels }) => ({
    name,
    points: levels.map(({ level, inferencesPerSecond, latencyUs }) => ({
      x: inferencesPerSecond,
      y: latencyUs.p99 / 1e3,
      title: `${level} at once: ${numberText(inferencesPerSecond)}/s, p99 ${numberText(latencyUs.p99 / 1e3)} ms`,
    })),
  }))
  const most = Math.max(0, ...series.flatMap(({ points }) => points.map(({ y }) => y)))
  const roofs = Object.entries(roofline?.peaks ?? {}).flatMap(([kind, peak]): ChartSeries[] => {
    const operations = roofline?.operations
    if (peak === null || operations === undefined) return []
    const x = peak / operations
    return [
      {
        name: `roof of ${kind}`,
        points: [
          { x, y: 0 },
          { x, y: most },
        ],
      },
    ]
  })
  return {
    title: 'Throughput and latency',
    text: 'With 1, 2, 4, 8 and 16 requests under way. A roof is what this processor could do if it did nothing but multiply.',
    html: lineChart([...series, ...roofs], {
      xLabel: 'inferences per second',
      yLabel: 'p99, ms',
      ...(limits.p99Ms !== undefined && { yMark: { y: limits.p99Ms, name: 'limit of p99' } }),
    }),
  }
}

function stepSection({ steps, space, baseline }: OptimizeReport): ReportSection {
  return {
    title: 'What each step gained',
    text: 'Medians of turns in which all of them were measured one after another.',
    html: htmlTable(
      ['step', 'configuration', 'inferences/s', 'over the step before', 'over the baseline', 'p99 ms'],
      steps.map(({ name, measured, throughputRatio }, index) => [
        name,
        index === 0 ? configurationText(baseline) : configurationText(measured.configuration, space),
        measured.worth.perSecond,
        `${throughputRatio.toFixed(2)} x`,
        times(measured.throughput),
        measured.worth.p99Ms,
      ]),
    ),
  }
}

function roofSection({ roofline, steps }: OptimizeReport): ReportSection {
  const operations = roofline?.operations
  const done = (one: RepeatedConfiguration | undefined) =>
    one === undefined || operations === undefined ? undefined : one.worth.perSecond * operations
  const rows = [
    ['float32, large products', roofline?.peaks.float32 ?? undefined],
    ['int8, large products', roofline?.peaks.int8 ?? undefined],
    ['the model, baseline', done(steps[0]?.measured)],
    ['the model, best', done(steps.at(-1)?.measured)],
  ] as const
  return {
    title: 'What this processor can do',
    text:
      operations === undefined
        ? 'What the model needs for an inference could not be told from its graph.'
        : `An inference of the model as it is needs ${numberText(operations / 1e9)} billion operations, by its graph; a multiplication and an addition are two. Another size of picture needs fewer.`,
    html: htmlTable(
      ['', 'billion operations per second', 'of float32'],
      rows.map(([name, value]) => {
        const peak = roofline?.peaks.float32 ?? undefined
        const share = value === undefined || peak === undefined ? '' : `${Math.round((value / peak) * 100)} %`
        return [name, value === undefined ? '' : value / 1e9, share]
      }),
    ),
  }
}

function formSection({ forms, accuracyBy }: OptimizeReport): ReportSection {
  return {
    title: 'Forms of the model',
    ...(accuracyBy && {
      text: `Accuracy: ${accuracyBy.kind === 'map' ? 'mAP' : 'agreement with the model as it is'} on ${accuracyBy.of}.`,
    }),
    html: htmlTable(
      ['form', 'MB', 'accuracy', 'tried'],
      forms.map(({ name, fileBytes, accuracy, leftOut }) => [
        name,
        fileBytes / 1e6,
        accuracy === undefined ? '' : accuracy.value.toFixed(4),
        leftOut ?? 'yes',
      ]),
    ),
  }
}

function finalistSection({ finalists, space }: OptimizeReport): ReportSection {
  return {
    title: 'The best, measured again in turn',
    html: htmlTable(
      ['configuration', 'objective over the baseline', 'inferences/s', 'p50 ms', 'p99 ms', 'cores', 'MiB'],
      finalists.map(({ configuration, gain, worth }, index) => [
        index === 0 ? 'baseline' : configurationText(configuration, space),
        times(gain),
        ...figures(worth),
      ]),
    ),
  }
}

function triedSection({ tried, space, exhaustive, configurations }: OptimizeReport): ReportSection {
  const sorted = tried.toSorted((a, b) => (b.gain ?? 0) - (a.gain ?? 0))
  return {
    title: 'All that was tried',
    text: exhaustive
      ? `All ${configurations} configurations.`
      : `${tried.length} of ${configurations} configurations, chosen one after another by what was expected of them.`,
    html: htmlTable(
      ['configuration', 'gain', 'inferences/s', 'p50 ms', 'p99 ms', 'cores', 'MiB', 'remark'],
      sorted.map(({ configuration, gain, worth, reason }) => [
        configurationText(configuration, space),
        gain ?? '',
        ...(worth === undefined ? ['', '', '', '', ''] : figures(worth)),
        reason ?? [...(worth?.broken ?? []), ...(worth?.cutShort === true ? ['ended early'] : [])].join('; '),
      ]),
    ),
  }
}

function figures({
  perSecond,
  p50Ms,
  p99Ms,
  cores,
  peakBytes,
}: RepeatedConfiguration['worth']): readonly HtmlCell[] {
  return [perSecond, p50Ms, p99Ms, cores, Math.round(peakBytes / 1024 ** 2)]
}

function methodFacts(report: OptimizeReport): (readonly [string, HtmlCell])[] {
  const { objective, limits, load, machine, seconds, interrupted } = report
  const { p99Ms, perSecond, memoryBytes, map, mapDrop, agreement } = limits
  const kept = [
    p99Ms === undefined ? '' : `p99 up to ${p99Ms} ms`,
    perSecond === undefined ? '' : `at least ${perSecond} inferences per second`,
    memoryBytes === undefined ? '' : `up to ${Math.round(memoryBytes / 1024 ** 2)} MiB`,
    map === undefined ? '' : `mAP at least ${map}`,
    mapDrop === undefined ? '' : `at most ${mapDrop} of mAP lost`,
    agreement === undefined ? '' : `agreement at least ${agreement}`,
  ].filter((text) => text !== '')
  return [
    [
      'objective',
      objective.kind === 'weighted'
        ? `throughput^${objective.weight} / p99^${numberText(1 - objective.weight)}`
        : objective.kind,
    ],
    ['limits', kept.length === 0 ? 'none' : kept.join(', ')],
    [
      'load',
      load.kind === 'trace'
        ? `recorded arrivals of ${load.cameras ?? 0} cameras, ${numberText(load.perSecond ?? 0)} per second; throughput is what the processor could do, by the share that they took`
        : 'so many requests under way as keep the instances busy',
    ],
    [
      'int8 of this processor',
      machine.vnni === undefined ? 'not known' : machine.vnni ? 'VNNI' : 'without VNNI',
    ],
    [
      'a trial',
      'a process of its own, with the scheduler and the instances that serve the model; windows until three agree within a tenth',
    ],
    ['time', `${numberText(seconds / 60)} min`],
    ...(interrupted ? ([['ended', 'by a signal, before it was done']] as const) : []),
  ]
}
