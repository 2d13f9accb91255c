import { Command, Option } from 'commander'
import { join } from 'node:path'
import { cameraSchema } from '../../config/camera.js'
import { loadPipeline, type LoadedPipeline } from '../../config/load.js'
import { createLog } from '../../lifecycle/log.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import type { OutputTarget } from '../../tools/batch/outputs/output-target.js'
import type { StoredOutput } from '../../tools/batch/outputs/stored-output.js'
import type { BatchProgress } from '../../tools/batch/rate.js'
import type { BatchSummary } from '../../tools/batch/run-batch.js'
import type { BatchModelFlags } from '../batch-scorer.js'
import type { CommandContext } from '../command-context.js'
import { exitCodes, UsageError, warningsOn } from '../failure.js'
import { configOption, flagSettings, type GlobalOptions, setOption } from '../options.js'
import { Progress } from '../progress.js'
import { checkScorerFlags, labelsOption } from '../scorer-flags.js'
import { addServerOptions } from '../server-options.js'
import { withFetchedRepositories } from '../stored-repositories.js'

type BatchFlags = GlobalOptions &
  BatchModelFlags &
  Readonly<{
    out: string
    format?: string
    set?: readonly string[]
    fps: string
    parallel?: string
    state?: string
    patience: string
    restart?: true
    failOnErrors?: true
  }>

/** What is scored in this time is scored anew after a kill. */
const commitEveryMs = 1_000
/** Every frame of a video: no camera is faster. */
const everyFrame = 1_000
const defaultFps = String(cameraSchema.shape.sampleFps.parse(undefined))

const help = `
Inputs: pictures (JPEG, PNG), videos, folders with all below them, globs, @LIST (a name on each line), - (a list on
standard input), s3://BUCKET/KEY, a prefix or a glob of keys (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, ...).
Output: by the end of --out: .jsonl, .csv, .json (COCO), .parquet, also of s3://BUCKET/KEY; or kafka://HOST:PORT/TOPIC.
The same command goes on with a run that was cut. What could not be scored is in OUT.errors.jsonl.

Examples:
  gantry batch photos/ clips/*.mp4 --fps 2 --out detections.jsonl
  gantry batch 's3://plant/2026-11/**/*.jpg' --out november.parquet
  find /archive -name '*.jpg' | gantry batch - -m ppe_detect --out kafka://broker:9092/archive.detections`

export function batchCommand(context: CommandContext): Command {
  const command = new Command('batch')
    .description('score pictures and videos that are stored; goes on where it was cut')
    .argument('<inputs...>', 'pictures, videos, folders, globs, @LIST, -, s3://BUCKET/PREFIX')
    .requiredOption(
      '-o, --out <file>',
      'where results go: a file, s3://BUCKET/KEY, kafka://HOST:PORT/TOPIC, or kafka (of -c)',
    )
    .addOption(
      new Option('--format <name>', 'of the file (default: by its end)').choices([
        'jsonl',
        'csv',
        'coco',
        'parquet',
      ]),
    )
    .option('-m, --model <name>', 'ensemble or detector (default: the one of the pipeline file, else ppe)')
    .option(
      '-r, --repository <folder>',
      'repository of models (default: that of -c, else of this installation)',
    )
    .addOption(configOption('pipeline file: models, inference, sinks.kafka'))
    .addOption(setOption())

  return addServerOptions(command, 'a running server in place of a model here: http://, grpc:// or HOST:PORT')
    .addOption(labelsOption())
    .option('--fps <n>', 'frames of a second of video; all: every frame', defaultFps)
    .option('--parallel <n>', 'pictures at once (default: as many as keep the model busy)')
    .option('--patience <seconds>', 'how long a server, a store or brokers may be away', '60')
    .option('--state <folder>', 'where the run keeps how far it is (default: OUT.batch)')
    .option('--restart', 'forget an earlier run, and write over its output')
    .option('--fail-on-errors', 'exit code 1 also when a part of the pictures has no result')
    .addHelpText('after', help)
    .action(async (inputs: string[], _, self: Command) =>
      batch(inputs, self.optsWithGlobals<BatchFlags>(), context),
    )
}

async function batch(inputs: readonly string[], options: BatchFlags, context: CommandContext): Promise<void> {
  const { terminal, signals } = context
  nodeWarnings.tell(warningsOn(terminal, options.json === true))
  const loaded = loadPipeline(options.config, { env: terminal.env, flags: flagSettings(options) })
  checkScorerFlags(options)
  const fps = options.fps === 'all' ? everyFrame : number(options.fps, '--fps', 0.001, 1_000)
  const parallel =
    options.parallel === undefined ? undefined : Math.round(number(options.parallel, '--parallel', 1, 4_096))
  const patienceMs = number(options.patience, '--patience', 0, 86_400) * 1e3
  const progress = new Progress(terminal, options.quiet === true || options.json === true)
  const [{ runBatch }, { openBatchScorer }, { outputTarget }, { S3Store }] = await Promise.all([
    import('../../tools/batch/run-batch.js'),
    import('../batch-scorer.js'),
    import('../../tools/batch/outputs/output-target.js'),
    import('../../tools/batch/inputs/s3-store.js'),
  ])
  const asked = outputTarget(options.out, options.format, loaded.config.sinks.kafka)
  const place = asked.kind === 'file' ? asked.path : asked.config.topics.detections
  const stateDir = options.state ?? `${place}.batch`
  const isObject = asked.kind === 'file' && asked.object !== undefined
  const errorsPath = isObject ? join(stateDir, `${place}.errors.jsonl`) : `${place}.errors.jsonl`
  const log = createLog({ ...loaded.config.log, level: logLevel(loaded) }, 'batch')
  const note = (text: string) => {
    if (options.quiet !== true && options.json !== true) progress.around(() => terminal.err(`note: ${text}`))
  }
  let store: InstanceType<typeof S3Store> | undefined
  try {
    const { target, stored } = await storedTarget(asked, { stateDir, errorsPath, patienceMs }, context)
    const summary = await runBatch({
      inputs,
      target,
      ...(stored && { stored }),
      out: options.out,
      stateDir,
      errorsPath,
      restart: options.restart === true,
      sampleFps: fps,
      parallel,
      patienceMs,
      commitEveryMs,
      settings: settingsOf(loaded, options),
      openScorer: async () =>
        openBatchScorer(options, await withFetchedRepositories(loaded, context), log, note),
      deps: {
        stdin: process.stdin,
        s3: () => (store ??= new S3Store(terminal.env, signals.asked)),
      },
      log,
      signal: signals.asked,
      listed: (files) => progress.show(`${files} files found`),
      progress: (now) => progress.show(progressLine(now)),
    })
    progress.end()
    tell(summary, isObject ? `${options.out}.errors.jsonl` : errorsPath, options, context)
  } catch (error) {
    progress.end()
    // What fails because it is being ended is no failure.
    if (!signals.asked.aborted) throw error
    context.exit(interrupted(context))
  }
}

/** An output that is an object of a store is a file in the folder of the run, until the run is done. */
async function storedTarget(
  target: OutputTarget,
  run: Readonly<{ stateDir: string; errorsPath: string; patienceMs: number }>,
  { terminal, signals }: CommandContext,
): Promise<Readonly<{ target: OutputTarget; stored?: StoredOutput }>> {
  if (target.kind !== 'file' || target.object === undefined) return { target }
  const { StoredOutput } = await import('../../tools/batch/outputs/stored-output.js')
  const path = join(run.stateDir, target.path)
  const stored = new StoredOutput({
    object: target.object,
    env: terminal.env,
    files: [
      { path, suffix: '' },
      { path: run.errorsPath, suffix: '.errors.jsonl' },
    ],
    patience: { forMs: run.patienceMs, signal: signals.asked },
  })
  return { target: { ...target, path }, stored }
}

/** What a run that goes on must be asked for as before, besides what it knows itself. */
function settingsOf({ config: { inference } }: LoadedPipeline, { url }: BatchFlags): Record<string, string> {
  const { scoreThreshold, iouThreshold, maxDetections } = inference
  return {
    scoreThreshold: String(scoreThreshold),
    iouThreshold: String(iouThreshold),
    maxDetections: String(maxDetections),
    'scored by': url === undefined ? 'a model here' : 'a server',
  }
}

/** The terminal is for progress: the log of models says what is wrong, and with --debug what they are. */
function logLevel({ config: { log } }: LoadedPipeline): 'debug' | 'warn' | 'error' {
  return log.level === 'info' ? 'warn' : log.level
}

function tell(summary: BatchSummary, errorsPath: string, options: BatchFlags, context: CommandContext): void {
  const { pictures, errors, complete } = summary
  const { terminal } = context
  if (options.json === true) terminal.out(JSON.stringify(summary, undefined, 2))
  else if (options.quiet !== true) terminal.out(summaryText(summary, options.out, errorsPath))
  if (!complete) context.exit(interrupted(context))
  else if (errors > 0 && (pictures === 0 || options.failOnErrors === true)) context.exit(exitCodes.runtime)
}

function interrupted({ signals }: CommandContext): number {
  return signals.first === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted
}

function summaryText(summary: BatchSummary, out: string, errorsPath: string): string {
  const { pictures, detections, errors, files, filesDone, complete, before, scored, seconds } = summary
  const told = `${pictures} pictures of ${filesDone} files, ${detections} detections in ${out}`
  const lost = errors === 0 ? '' : `; ${errors} without a result, told in ${errorsPath}`
  if (before) return `nothing left to do: ${told}${lost}; --restart scores again`
  const pace = seconds > 0 ? `; ${scored} in ${seconds.toFixed(1)} s, ${(scored / seconds).toFixed(1)}/s` : ''
  const rest = complete ? '' : `; ${files - filesDone} files are left: the same command goes on`
  return `${told}${lost}${pace}${rest}`
}

function progressLine({
  pictures,
  errors,
  filesDone,
  files,
  picturesPerSecond,
  secondsLeft,
}: BatchProgress): string {
  const lost = errors === 0 ? '' : `, ${errors} without a result`
  const left = secondsLeft === undefined ? '' : `, ${duration(secondsLeft)} left`
  return `${filesDone} of ${files} files, ${pictures} pictures${lost}, ${picturesPerSecond.toFixed(1)}/s${left}`
}

function duration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`
}

function number(text: string, flag: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= min && value <= max) return value
  throw new UsageError(`${flag} is "${text}"`, `Use a number from ${min} to ${max}.`)
}
