import { htmlFacts, htmlTable, numberText } from '../report/html.js'
import { lineChart } from '../report/line-chart.js'
import { reportPage, type ReportSection } from '../report/report-page.js'
import type { ReportComparison } from './compare-reports.js'
import { latencyText, loadText, type PerfReport, type SavedReport } from './perf-report.js'

/** A run as a page: curves of throughput and latency, where the time goes, and how it was measured. */
export function perfPage(report: PerfReport): string {
  const { model, url, at, levels, load, limit } = report
  const levelName = loadText(load)
  const mark = limit === undefined ? {} : { yMark: { y: limit.limitMs, name: `limit of ${limit.of}` } }
  const sections: ReportSection[] = [
    {
      title: 'Throughput and latency',
      text: latencyText(load),
      html: lineChart(
        (['p50', 'p95', 'p99'] as const).map((name) => ({
          name,
          points: levels.map(({ level, inferencesPerSecond, latencyUs }) => ({
            x: inferencesPerSecond,
            y: latencyUs[name] / 1e3,
            title: `${level}: ${numberText(inferencesPerSecond)}/s, ${name} ${numberText(latencyUs[name] / 1e3)} ms`,
          })),
        })),
        { xLabel: 'inferences per second', yLabel: 'latency, ms', ...mark },
      ),
    },
    {
      title: `By ${levelName}`,
      html:
        lineChart(
          [
            {
              name: 'inferences per second',
              points: levels.map((one) => ({ x: one.level, y: one.inferencesPerSecond })),
            },
          ],
          { xLabel: levelName, yLabel: 'inferences per second' },
        ) + levelTable(report),
    },
    { title: 'Where the time goes', text: splitText(report), html: splitTable(report) },
    { title: 'How it was measured', html: htmlFacts(factsOf(report)) },
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
  return reportPage({ title: `${model}: throughput and latency`, subtitle: `${url}, ${at}`, sections })
}

function levelTable({ levels }: PerfReport): string {
  return htmlTable(
    [
      'level',
      'inferences/s',
      'p50 ms',
      'p90 ms',
      'p95 ms',
      'p99 ms',
      'longest ms',
      'requests',
      'errors',
      'dropped',
      'client cores',
      'steady',
    ],
    levels.map(
      ({
        level,
        inferencesPerSecond,
        latencyUs,
        requests,
        errors,
        dropped,
        clientCores,
        steady,
        cutShort,
      }) => [
        level,
        inferencesPerSecond,
        ...[latencyUs.p50, latencyUs.p90, latencyUs.p95, latencyUs.p99, latencyUs.max].map((us) => us / 1e3),
        requests,
        errors,
        dropped ?? 0,
        clientCores,
        cutShort ? 'cut short' : steady ? 'yes' : 'no',
      ],
    ),
  )
}

function splitText({ levels }: PerfReport): string {
  const told = 'Means of a request, in milliseconds.'
  return levels.some(({ splitUs }) => splitUs.server !== undefined)
    ? `${told} Those of the server are its own statistics; what neither side accounts for is network.`
    : `${told} This server has no statistics: what it did is in network.`
}

function splitTable({ levels }: PerfReport): string {
  return htmlTable(
    [
      'level',
      'wait',
      'client send',
      'network',
      'queue',
      'compute input',
      'compute infer',
      'compute output',
      'client receive',
    ],
    levels.map(({ level, splitUs: { clientWait, clientSend, network, server, clientReceive } }) => [
      level,
      ...[clientWait, clientSend, network].map((us) => us / 1e3),
      ...[server?.queue, server?.computeInput, server?.computeInfer, server?.computeOutput].map((us) =>
        us === undefined ? '' : us / 1e3,
      ),
      clientReceive / 1e3,
    ]),
  )
}

function factsOf(report: PerfReport): (readonly [string, string | number])[] {
  const { server, protocol, inputs, inputData, batchSize, load, windows, limit, interrupted, fault } = report
  return [
    ['server', `${server.name} ${server.version}`],
    ['protocol', protocol],
    ['load', loadText(load)],
    ...(inputs.length === 0
      ? []
      : ([
          [
            'inputs',
            inputs.map(({ name, datatype, shape }) => `${name} ${datatype} [${shape.join(', ')}]`).join('; '),
          ],
          ['input data', inputData],
          ['batch', batchSize],
        ] as const)),
    [
      'windows',
      `${numberText(windows.ms / 1e3)} s each, until the last three agree within ${numberText(windows.within * 100)} % in throughput and ${windows.steadyBy}; at most ${windows.most}`,
    ],
    ...(limit === undefined
      ? []
      : ([
          [`highest level with ${limit.of} up to ${numberText(limit.limitMs)} ms`, limit.highest ?? 'none'],
        ] as const)),
    ...(interrupted ? ([['ended', 'by a signal, before it was done']] as const) : []),
    ...(fault === undefined ? [] : ([['ended', fault.message]] as const)),
  ]
}

/** Two runs as a page. */
export function comparisonPage(
  comparison: ReportComparison,
  reports: readonly [SavedReport, SavedReport],
): string {
  const { names, levels, kind } = comparison
  const curves = reports.map((report, index) => ({
    name: names[index] ?? '',
    points: report.levels.map(({ inferencesPerSecond, latencyUs }) => ({
      x: inferencesPerSecond,
      y: latencyUs.p99 / 1e3,
    })),
  }))
  const sections = [
    {
      title: 'Throughput and p99',
      html: lineChart(curves, { xLabel: 'inferences per second', yLabel: 'p99, ms' }),
    },
    {
      title: 'Level by level',
      text: `Ratios are ${names[1]} over ${names[0]}.`,
      html: htmlTable(
        [kind, 'inferences/s', '', 'ratio', 'p50 ms', '', 'ratio', 'p99 ms', '', 'ratio'],
        levels.map((one) => [
          one.level,
          ...one.inferencesPerSecond,
          { html: ratioHtml(one.throughputRatio, true) },
          ...one.p50Us.map((us) => us / 1e3),
          { html: ratioHtml(one.p50Ratio, false) },
          ...one.p99Us.map((us) => us / 1e3),
          { html: ratioHtml(one.p99Ratio, false) },
        ]),
      ),
    },
  ]
  const subtitle = reports.map(({ model, url }) => `${model} at ${url}`).join(' and ')
  return reportPage({ title: `${names[0]} and ${names[1]}`, subtitle, sections })
}

/** Within a hundredth nothing is better or worse. */
function ratioHtml(ratio: number, moreIsBetter: boolean): string {
  const text = ratio.toFixed(2)
  if (text === '1.00') return text
  return `<span class="${ratio > 1 === moreIsBetter ? 'better' : 'worse'}">${text}</span>`
}
