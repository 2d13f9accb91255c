import { availableParallelism, cpus } from 'node:os'
import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { onnxRuntimeVersion } from '../backends/onnxruntime/providers.js'
import { thisProcessor } from '../backends/onnxruntime/processor.js'
import { loadPipeline } from '../config/load.js'
import { byTrueName } from '../lifecycle/system-limit.js'
import { NotAppliedError, OptimizeStateError } from '../tools/optimize/optimize-errors.js'
import type { GantryApi } from '../tools/client/gantry-api.js'
import type { OptimizeReport } from '../tools/optimize/optimize-report.js'
import type { OptimizeOutcome, OptimizeRequest } from '../tools/optimize/run-optimize.js'
import type { CommandContext } from './command-context.js'
import { modelSource } from './model-source.js'
import { type OptimizedModel, optimizedModel } from './optimize-model.js'
import { type OptimizeFlags, type OptimizeSettings, optimizeSettings } from './optimize-options.js'
import { optimizeTables } from './optimize-table.js'
import type { GlobalOptions } from './options.js'
import type { Progress } from './progress.js'
import { type ServerLoginFlags, serverLogin } from './server-options.js'
import { withFetchedRepositories } from './stored-repositories.js'

export type OptimizeOptions = GlobalOptions & OptimizeFlags

/** What the service keeps to where no agreement was asked for. */
const usualAgreement = 0.9

/**
 * Searches, writes the result and tells of it; applies it where that is asked for.
 *
 * @param command - that makes the same search.
 * @throws what is wrong with the request, before anything is measured; what ended the search, after what there is was told
 */
export async function runOptimization(
  subject: string,
  options: OptimizeOptions,
  command: string,
  progress: Progress,
  context: CommandContext,
): Promise<void> {
  const { terminal, signals } = context
  const loaded = loadPipeline(options.config, { env: terminal.env })
  const source = modelSource(await withFetchedRepositories(loaded, context), options.repository)
  const settings = optimizeSettings(options, source.inference.providers)
  const optimized = optimizedModel(subject, source.repositories, options)
  const { checkResultPlace, writeResult } = await import('../tools/optimize/write-result.js')
  checkResultPlace(optimized.place)
  // Whoever is to take the result must be there before it takes its time.
  if (options.apply !== undefined) await (await serviceAt(options.apply, options)).ensemble()
  const work = resolve(options.work ?? join('gantry-optimize', optimized.model.name))
  const prepared = await prepare(options, settings, optimized, work, progress, context, source.inference)
  try {
    const beganMs = performance.now()
    const { runOptimize } = await import('../tools/optimize/run-optimize.js')
    const outcome = await runOptimize(prepared.request)
    progress.end()
    let report = reportOf(
      outcome,
      settings,
      optimized,
      prepared,
      command,
      (performance.now() - beganMs) / 1e3,
    )
    const { found, form, failure } = outcome
    if (found.best !== undefined && form !== undefined && !found.interrupted && failure === undefined) {
      const result = writeResult(join(work, 'forms'), form.entry, found.best.configuration, optimized.place)
      report = { ...report, result }
    }
    await tell(report, work, options, context)
    if (failure !== undefined) throw failure
    if (options.apply !== undefined && report.result !== undefined && !signals.asked.aborted)
      await apply(options.apply, report.result, settings, options, progress, context)
  } finally {
    await prepared.release()
  }
}

type Prepared = Readonly<{
  request: OptimizeRequest
  accuracyBy: OptimizeReport['accuracyBy']
  load: OptimizeReport['load']
  release(): Promise<void>
}>

/** All that may be wrong is found before anything takes its time. */
async function prepare(
  options: OptimizeOptions,
  settings: OptimizeSettings,
  { model }: OptimizedModel,
  work: string,
  progress: Progress,
  { terminal, signals }: CommandContext,
  inference: OptimizeRequest['inference'],
): Promise<Prepared> {
  const [
    { Journal },
    { RunLock },
    { subjectOf },
    { accuracyMeasure },
    { arrivalsFor },
    { createLog },
    { pictureOrigins },
  ] = await Promise.all([
    import('../tools/optimize/journal.js'),
    import('../lifecycle/run-lock.js'),
    import('../tools/optimize/subject.js'),
    import('../tools/optimize/accuracy-measure.js'),
    import('../tools/optimize/arrivals-for.js'),
    import('../lifecycle/log.js'),
    import('./picture-origins.js'),
  ])
  makeFolder(work)
  const lock = await RunLock.take(
    join(work, 'lock'),
    (pid) =>
      new OptimizeStateError(
        `another search is at work in ${work} (process ${pid})`,
        'Wait for it, end it with Ctrl-C, or name another folder with --work.',
      ),
  )
  try {
    if (options.restart === true) forget(work, ['journal.jsonl'])
    const subject = await subjectOf(model, measuredFlags(options))
    const journal = await Journal.open(join(work, 'journal.jsonl'), subject)
    // What lies there may be of another model.
    if (journal.size === 0) forget(work, ['forms', 'pictures', 'roofline', 'trace.json'])
    const frames = await pictureOrigins(options, terminal.env)
    const show = (text: string) => progress.show(text)
    const trace = await arrivalsFor(
      options.trace,
      serverLogin(options),
      settings.traceSeconds,
      join(work, 'trace.json'),
      signals.asked,
      show,
    )
    const measure = await accuracyMeasure({
      model,
      set: settings.set,
      wish: settings.wish,
      frames,
      count: settings.pictures,
      folder: join(work, 'pictures'),
      signal: signals.asked,
    })
    // Nothing is wrong with it: from here on what lies there is of this search.
    await journal.once('begun', () => Promise.resolve(new Date().toISOString()))
    const quiet = options.quiet === true || options.json === true
    const request: OptimizeRequest = {
      ...settings,
      model,
      forms: {
        precisions: settings.precisions,
        sizes: settings.sizes,
        frames:
          frames.length > 0
            ? frames
            : measure?.kind === 'map'
              ? measure.set.pictures.map(({ path }) => path)
              : [],
        python: options.python,
      },
      accuracy: { measure, limits: settings.accuracy },
      ...(trace && { gapsMs: trace.gapsMs }),
      concurrency: settings.concurrency,
      inputData: options.inputData,
      cores: availableParallelism(),
      inference,
      work,
      journal,
      env: terminal.env,
      quiet,
      log: createLog({ level: options.debug === true ? 'info' : 'error', format: 'auto' }, 'gantry'),
      signal: signals.asked,
      say: (line) => void (quiet || progress.around(() => terminal.err(line))),
      progress: show,
    }
    return {
      request,
      accuracyBy: measure && {
        kind: measure.kind,
        of: measure.kind === 'map' ? measure.set.name : measure.from,
      },
      load:
        trace === undefined
          ? { kind: 'concurrency' }
          : { kind: 'trace', perSecond: trace.perSecond, cameras: trace.cameras },
      release: () => lock.release(),
    }
  } catch (error) {
    await lock.release()
    throw error
  }
}

function reportOf(
  { found }: OptimizeOutcome,
  { objective, limits, accuracy }: OptimizeSettings,
  { model }: OptimizedModel,
  { accuracyBy, load }: Prepared,
  command: string,
  seconds: number,
): OptimizeReport {
  return {
    gantryOptimize: 1,
    at: new Date().toISOString(),
    model: model.name,
    machine: machineFacts(),
    objective,
    limits: { ...limits, ...(accuracyBy && accuracy) },
    load,
    ...(accuracyBy && { accuracyBy }),
    ...found,
    seconds,
    command,
  }
}

function machineFacts(): OptimizeReport['machine'] {
  const { flags } = thisProcessor()
  return {
    processor: cpus()[0]?.model ?? process.arch,
    cores: availableParallelism(),
    onnxRuntime: onnxRuntimeVersion(),
    vnni: flags.size === 0 ? undefined : flags.has('avx512_vnni') || flags.has('avx_vnni'),
  }
}

/** Those that decide what is measured and how: with another one of them it is another search. */
function measuredFlags(options: OptimizeOptions): Partial<OptimizeFlags> {
  const {
    trials: _,
    rounds: __,
    brief: _j,
    out: ___,
    name: ____,
    work: _____,
    restart: ______,
    apply: _a,
    applySeconds: _b,
    applyRatio: _k,
    token: _c,
    ca: _l,
    cert: _m,
    key: _n,
    python: _d,
    json: _e,
    quiet: _f,
    debug: _g,
    config: _h,
    repository: _i,
    ...measured
  } = options
  return measured
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (error) {
    throw byTrueName(`${path} cannot be made`, error)
  }
}

function forget(work: string, names: readonly string[]): void {
  for (const name of names) rmSync(join(work, name), { recursive: true, force: true })
}

/** What was found is written first: whoever reads it may be gone. */
async function tell(
  report: OptimizeReport,
  work: string,
  options: OptimizeOptions,
  { terminal }: CommandContext,
): Promise<void> {
  const [{ writeReportFile }, { optimizeCsv }, { optimizePage }] = await Promise.all([
    import('../tools/report/report-file.js'),
    import('../tools/optimize/optimize-csv.js'),
    import('../tools/optimize/optimize-page.js'),
  ])
  const json = JSON.stringify(report, undefined, 2)
  const page = join(work, 'report.html')
  writeReportFile(join(work, 'report.json'), `${json}\n`)
  writeReportFile(join(work, 'results.csv'), optimizeCsv(report))
  writeReportFile(page, optimizePage(report))
  if (options.json === true) return terminal.out(json)
  terminal.out(optimizeTables(report))
  if (report.result !== undefined) terminal.out(`\nwritten: ${report.result.path}${forCameras(report)}`)
  if (options.quiet === true) return
  for (const note of report.notes) terminal.err(`note: ${note}`)
  terminal.err(`report: ${page}`)
  if (report.interrupted) terminal.err('ended before it was done; the same command goes on from here')
}

/** Cameras take batches and their wait from the pipeline file. */
function forCameras({ result, best }: OptimizeReport): string {
  const ensemble = result?.ensemble === undefined ? '' : `, and ensemble ${result.ensemble}`
  const { maxBatch = 1, queueDelayUs = 0 } = best?.configuration ?? {}
  return maxBatch === 1
    ? ensemble
    : `${ensemble}\ncameras take batches by: inference: { maxBatchSize: ${maxBatch}, maxQueueDelayMs: ${queueDelayUs / 1e3} }`
}

async function apply(
  url: string,
  result: NonNullable<OptimizeReport['result']>,
  { applySeconds, applyRatio, accuracy }: OptimizeSettings,
  options: OptimizeOptions,
  progress: Progress,
  { terminal, signals }: CommandContext,
): Promise<void> {
  const { applyResult } = await import('../tools/optimize/apply-result.js')
  const name = result.ensemble ?? result.name
  const trial = {
    seconds: applySeconds,
    minAgreement: accuracy.agreement ?? usualAgreement,
    maxP99Ratio: applyRatio,
  }
  const api = await serviceAt(url, options)
  const applied = await applyResult(api, name, trial, signals.asked, (text) => progress.show(text))
  progress.end()
  if (options.json === true) return terminal.err(JSON.stringify({ applied }))
  if (applied.outcome !== 'kept') throw new NotAppliedError(url, applied)
  terminal.out(`${url}: cameras run ${name} now, ${applied.before} before; ${applied.reason}`)
  if (applied.configured !== name)
    terminal.err(`note: until its next start; to keep it, write ensemble: ${name} into its pipeline file`)
}

async function serviceAt(url: string, flags: ServerLoginFlags): Promise<GantryApi> {
  const [{ GantryApi: Api }, { serverTarget }] = await Promise.all([
    import('../tools/client/gantry-api.js'),
    import('../tools/client/server-url.js'),
  ])
  const { token, trust } = serverLogin(flags)
  return new Api(serverTarget(url, 'http'), token, trust)
}
