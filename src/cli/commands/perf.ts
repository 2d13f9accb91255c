import { Command, Option } from 'commander'
import type { CommandContext } from '../command-context.js'
import type { PerfReport } from '../../tools/perf/perf-report.js'
import { exitCodes, exitCodeOf, reportFailure, UsageError, warningsOn } from '../failure.js'
import type { GlobalOptions } from '../options.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import { RemoteError } from '../../errors.js'
import { levelLine, levelHead, compareTable } from '../perf-table.js'
import { Progress } from '../progress.js'
import { addServerOptions } from '../server-options.js'
import { compareOptions, type PerfFlags, perfOptions } from '../perf-options.js'

type PerfCommandOptions = GlobalOptions & PerfFlags

const example = `
Examples:
  gantry perf -m ppe_detect --concurrency 1:16:4 --report perf.html
  gantry perf -m ppe_detect -i grpc --request-rate 10:100:10 --request-distribution poisson --csv perf.csv
  gantry perf -m ppe_detect --concurrency 1:64 --latency-threshold 50 --binary-search
  gantry perf --cameras 1:8 --fps 5 --clip dock.mp4
  gantry perf --compare before.json after.json`

export function perfCommand(context: CommandContext): Command {
  const command = new Command('perf')
    .description(
      'measure how fast a model server, or a service with cameras, answers; of Gantry, Triton or any other of KServe v2',
    )
    .option(
      '-m, --model <name>',
      'model; with --cameras: frames are decoded here and sent to it, else the service gets cameras',
    )
    .option('--model-version <version>', 'version of the model (default: the one the server chooses)')

  addServerOptions(
    command,
    'the server: http://, https://, grpc://, grpcs:// or HOST:PORT (default: this machine)',
  )
    .addOption(new Option('-i, --protocol <protocol>', 'of requests').choices(['http', 'grpc']))
    .option('--concurrency <a:b:step>', 'requests under way at all times (default: 1)')
    .option(
      '--request-rate <a:b:step>',
      'requests per second, whether the server keeps up or not (step: a tenth of the range)',
    )
    .addOption(
      new Option('--request-distribution <name>', 'of a rate')
        .choices(['constant', 'poisson'])
        .default('constant'),
    )
    .option('--max-under-way <n>', 'of a rate: requests that are sent before others are answered', '256')
    .option('--cameras <a:b:step>', 'cameras')
    .option('--fps <n>', 'of cameras: frames per second of each', '5')
    .option(
      '--clip <path>',
      'of cameras: a video, or the URL of a camera (default: a clip of this installation)',
    )
    .option('-b, --batch <n>', 'rows of a request', '1')
    .option(
      '--shape <name:d1,d2>',
      'sizes of an input that are free, without the batch; may be repeated',
      collect,
    )
    .option(
      '--input-data <what>',
      'zeros, random, a data file of perf_analyzer (.json), a folder with a file for each input, a picture, a folder of them, a video',
      'random',
    )
    .option('--json-tensors', 'write tensors in JSON also to a server that reads binary ones')
    .option('--seed <n>', 'of what is random', '1')
    .option('--window-ms <n>', 'length of a measurement window', '5000')
    .option('--stability <percent>', 'largest difference of the last three windows', '10')
    .option('--max-windows <n>', 'windows after which a level is given up as not steady', '10')
    .addOption(
      new Option(
        '--percentile <n>',
        'of latency, which must be steady and keep the limit (default: the mean, and 99)',
      ).choices(['50', '90', '95', '99']),
    )
    .option('--latency-threshold <ms>', 'end at the first level that is slower')
    .option('--binary-search', 'find the highest level that keeps the threshold by halves')
    .option('--csv <file>', 'write a CSV with the columns of perf_analyzer')
    .option('--save <file>', 'write the report as JSON, for --compare')
    .option('--report <file>', 'write a page with the curves')
    .option('--compare <files...>', 'two saved reports, level by level; measures nothing')
    .addHelpText('after', example)
  return command.action(async (_, self: Command) => {
    const options = self.optsWithGlobals<PerfCommandOptions>()
    nodeWarnings.tell(warningsOn(context.terminal, options.json === true))
    await (options.compare === undefined ? perf(options, context) : compare(options, context))
  })
}

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value]

async function perf(options: PerfCommandOptions, context: CommandContext): Promise<void> {
  const { terminal, signals } = context
  const [{ runPerf }, { checkReportFile }, { levelText }] = await Promise.all([
    import('../../tools/perf/run-perf.js'),
    import('../../tools/report/report-file.js'),
    import('../../tools/perf/perf-report.js'),
  ])
  const asked = perfOptions(options, terminal.env)
  for (const file of [options.csv, options.save, options.report])
    if (file !== undefined) checkReportFile(file)
  const { kind } = asked.load
  const progress = new Progress(terminal, options.quiet === true || options.json === true)
  const isTable = options.json !== true
  try {
    const report = await runPerf(asked, signals.asked, {
      begun: () => isTable && terminal.out(levelHead(kind, terminal.color.out)),
      window: (level, { windows, perSecond, p99Us }) =>
        progress.show(
          `${levelText(kind, level)}: window ${windows} of at most ${asked.mostWindows}, ${perSecond.toFixed(1)}/s, p99 ${(p99Us / 1e3).toFixed(2)} ms`,
        ),
      level: (result) => progress.around(() => isTable && terminal.out(levelLine(result))),
    })
    progress.end()
    if (!isTable) terminal.out(JSON.stringify(report, undefined, 2))
    else {
      if (report.limit !== undefined) terminal.out(limitLine(report.limit))
      for (const note of report.notes) terminal.err(note)
    }
    await write(options, report)
    if (report.fault !== undefined) {
      const fault = new RemoteError(report.fault)
      reportFailure(fault, terminal, { json: options.json === true })
      context.exit(exitCodeOf(fault))
    }
    if (report.interrupted)
      context.exit(signals.first === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted)
  } catch (error) {
    progress.end()
    // What fails because it is being ended is no failure.
    if (!signals.asked.aborted) throw error
    context.exit(signals.first === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted)
  }
}

function limitLine({
  highest,
  of,
  limitMs,
}: Readonly<{ highest: number | null; of: string; limitMs: number }>): string {
  return highest === null
    ? `no level keeps ${of} up to ${limitMs} ms`
    : `highest with ${of} up to ${limitMs} ms: ${highest}`
}

async function write({ csv, save, report: page }: PerfFlags, report: PerfReport): Promise<void> {
  const [{ writeReportFile }, { perfCsv }, { perfPage }] = await Promise.all([
    import('../../tools/report/report-file.js'),
    import('../../tools/perf/perf-csv.js'),
    import('../../tools/perf/perf-page.js'),
  ])
  if (csv !== undefined) writeReportFile(csv, perfCsv(report))
  if (save !== undefined) writeReportFile(save, `${JSON.stringify(report, undefined, 2)}\n`)
  if (page !== undefined) writeReportFile(page, perfPage(report))
}

async function compare(options: PerfCommandOptions, { terminal }: CommandContext): Promise<void> {
  const [{ compareReports }, { readReport }, { comparisonPage }, { checkReportFile, writeReportFile }] =
    await Promise.all([
      import('../../tools/perf/compare-reports.js'),
      import('../../tools/perf/perf-report.js'),
      import('../../tools/perf/perf-page.js'),
      import('../../tools/report/report-file.js'),
    ])
  const names = compareOptions(options)
  if (options.csv !== undefined || options.save !== undefined)
    throw new UsageError(
      '--compare writes no --csv and no --save',
      'Use --json, or --report FILE for a page.',
    )
  if (options.report !== undefined) checkReportFile(options.report)
  const reports = [readReport(names[0]), readReport(names[1])] as const
  const comparison = compareReports(...reports, names)
  terminal.out(
    options.json === true
      ? JSON.stringify(comparison, undefined, 2)
      : compareTable(comparison, terminal.color.out),
  )
  if (options.report !== undefined) writeReportFile(options.report, comparisonPage(comparison, reports))
}
