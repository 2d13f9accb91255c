import { randomBytes } from 'node:crypto'
import { access, mkdir, rm, rmdir, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { isS3Url } from '../../config/s3-url.js'
import type { Log } from '../../lifecycle/log.js'
import { RunLock } from '../../lifecycle/run-lock.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { PictureScorer } from '../scoring/picture-scorer.js'
import { BatchInputError, BatchStateError } from './batch-errors.js'
import { BatchRun } from './batch-run.js'
import { writeFileList } from './file-list.js'
import { type InputDeps, listInputs } from './inputs/list-inputs.js'
import type { BatchOutput } from './outputs/batch-output.js'
import { FileOutput } from './outputs/file-output.js'
import { KafkaOutput } from './outputs/kafka-output.js'
import { LineFile } from './outputs/line-file.js'
import type { OutputTarget } from './outputs/output-target.js'
import type { StoredOutput } from './outputs/stored-output.js'
import type { BatchProgress } from './rate.js'
import {
  type BatchCounts,
  checkSameSettings,
  loadRunState,
  type RunSettings,
  type RunState,
  saveRunState,
} from './run-state.js'
import { FileScorer } from './score-file.js'

/** What a scorer is opened as: its own, and what a run remembers of it. */
export type OpenedScorer = Readonly<{
  scorer: PictureScorer
  /** What records name. */
  model: Readonly<{ name: string; version: string }>
  /** Of the model's input, where it is known. */
  inputPx: SizePx | undefined
  /** Names what the model computes. */
  print: string
}>

export type BatchOptions = Readonly<{
  inputs: readonly string[]
  target: OutputTarget
  /** Makes objects of the files once the run is done; absent: they stay files. */
  stored?: StoredOutput
  /** As it was written, for people. */
  out: string
  /** Folder of what is known of the run. */
  stateDir: string
  errorsPath: string
  /** Forget an earlier run, and its output. */
  restart: boolean
  sampleFps: number
  /** Pictures at once; absent: as many as the scorer wants. */
  parallel: number | undefined
  /** How long a server, a store or brokers may be away. */
  patienceMs: number
  /** What is scored in this time is scored anew after a kill. */
  commitEveryMs: number
  /** What else a run that goes on must be asked for as before. */
  settings: RunSettings
  openScorer: () => Promise<OpenedScorer>
  deps: InputDeps
  log: Log
  signal: AbortSignal
  listed(files: number): void
  progress(progress: BatchProgress): void
}>

export type BatchSummary = BatchCounts &
  Readonly<{
    files: number
    filesDone: number
    /** All files are done. */
    complete: boolean
    /** There was nothing left to do. */
    before: boolean
    /** Pictures of this part of the run, and how long it took. */
    scored: number
    seconds: number
  }>

type Paths = Readonly<{ state: string; list: string; work: string; lock: string; temp: string }>

/**
 * Scores all that the inputs name, or goes on with a run that was cut: what is done is kept in a folder beside the output.
 *
 * @returns what there is at the end, also where the signal ended the run.
 * @throws BatchInputError, BatchStateError, BatchStoppedError, SystemLimitError, KafkaUnavailableError, ObjectStoreError; why the scorer cannot be opened
 */
export async function runBatch(options: BatchOptions): Promise<BatchSummary> {
  const { stateDir, out, restart } = options
  const paths: Paths = {
    state: join(stateDir, 'run.json'),
    list: join(stateDir, 'files'),
    work: join(stateDir, 'lines.jsonl'),
    lock: join(stateDir, 'lock'),
    temp: stateDir,
  }
  await mkdir(stateDir, { recursive: true }).catch((error: unknown) => {
    throw byTrueName(`${stateDir} cannot be made`, error)
  })
  const lock = await RunLock.take(
    paths.lock,
    (pid) =>
      new BatchStateError(
        `another run is at work on ${out} (process ${pid})`,
        'Wait for it, end it with Ctrl-C, or name another --out.',
      ),
  )
  try {
    if (restart) await forget(options, paths)
    const known = await loadRunState(paths.state)
    if (known === undefined) await checkFree(options)
    return await withScorer(options, paths, known)
  } finally {
    if (!(await exists(paths.state))) await rm(paths.list, { force: true })
    await lock.release()
    // Of a run that never began nothing is left.
    await rmdir(stateDir).catch(() => undefined)
  }
}

async function withScorer(
  options: BatchOptions,
  paths: Paths,
  known: RunState | undefined,
): Promise<BatchSummary> {
  // What is wrong with the inputs is told before a model is loaded.
  const files = known?.files ?? (await list(options, paths))
  const opened = await options.openScorer()
  try {
    const settings = settingsOf(options, opened)
    if (known !== undefined) checkSameSettings(options.out, known.settings, settings)
    if (known?.finished === true) return summary(known, true, 0, 0)
    const state = known ?? newState(files, settings, opened)
    if (known === undefined) await saveRunState(paths.state, state)
    return await score(options, paths, state, opened)
  } finally {
    await opened.scorer.stop(0)
  }
}

async function list({ inputs, deps, out, listed, signal }: BatchOptions, paths: Paths): Promise<number> {
  const names = async function* () {
    for await (const name of listInputs(inputs, deps)) {
      signal.throwIfAborted()
      yield name
    }
  }
  const files = await writeFileList(paths.list, names(), listed)
  if (files > 0) return files
  throw new BatchInputError(
    `nothing to score for ${out}: no picture (JPEG, PNG) and no video in ${inputs.join(', ')}`,
    'Name files, folders, globs, @LIST or s3://BUCKET/PREFIX that hold some.',
  )
}

function settingsOf(
  { inputs, target, stored, out, sampleFps, settings }: BatchOptions,
  opened: OpenedScorer,
): RunSettings {
  const { model, print, scorer } = opened
  return {
    inputs: inputs.map((input) => JSON.stringify(input)).join(' '),
    format: target.kind === 'file' ? target.format : `kafka topic ${target.config.topics.detections}`,
    model: `${model.name}:${model.version} (${print})`,
    labels: scorer.info.labels.join(', '),
    fps: String(sampleFps),
    // The folder of the run is not told apart by it, as that of a file is.
    ...(stored && { out }),
    ...settings,
  }
}

function newState(files: number, settings: RunSettings, { scorer }: OpenedScorer): RunState {
  return {
    version: 1,
    runId: randomBytes(6).toString('hex'),
    settings,
    files,
    labels: [...scorer.info.labels],
    outputBytes: 0,
    errorBytes: 0,
    marks: { next: 0, done: [], open: [] },
    counts: { pictures: 0, detections: 0, errors: 0 },
    finished: false,
  }
}

async function score(
  options: BatchOptions,
  paths: Paths,
  state: RunState,
  { scorer, model, inputPx }: OpenedScorer,
): Promise<BatchSummary> {
  const { sampleFps, patienceMs, commitEveryMs, signal, progress, errorsPath } = options
  const output = outputOf(options, paths, state)
  const errors = new LineFile(errorsPath)
  const atOnce = options.parallel ?? scorer.info.atOnce
  const fromStore = options.inputs.some(isS3Url)
  const patience = { forMs: patienceMs, signal }
  const beganMs = performance.now()
  try {
    await output.open(state.outputBytes)
    await errors.open(state.errorBytes)
    const run = new BatchRun({
      state,
      statePath: paths.state,
      listPath: paths.list,
      scorer: new FileScorer({
        scorer,
        model,
        sampleFps,
        inputPx,
        s3: options.deps.s3,
        tempDir: paths.temp,
        atOnce,
        videosAtOnce: availableParallelism(),
        patience,
      }),
      // Bytes of the next pictures are read meanwhile; a store is far away.
      lanes: atOnce * (fromStore ? 4 : 2),
      output,
      errors,
      commitEveryMs,
      signal,
      progress,
    })
    const complete = await run.run()
    await output.complete()
    if (complete) {
      await options.stored?.upload()
      await run.keepFinished()
      await Promise.all([rm(paths.list, { force: true }), rm(paths.work, { force: true })])
      await options.stored?.removeFiles()
    }
    const scored = run.state.counts.pictures - state.counts.pictures
    return summary(run.state, false, scored, (performance.now() - beganMs) / 1e3)
  } finally {
    await Promise.all([output.close(), errors.close()])
    if (await isEmpty(errorsPath)) await rm(errorsPath, { force: true })
  }
}

function outputOf({ target, patienceMs, log }: BatchOptions, paths: Paths, state: RunState): BatchOutput {
  const { runId, labels } = state
  if (target.kind === 'kafka') return new KafkaOutput({ config: target.config, runId, patienceMs, log })
  return new FileOutput({ ...target, workPath: paths.work, labels })
}

function summary(
  { counts, files, marks, finished }: RunState,
  before: boolean,
  scored: number,
  seconds: number,
): BatchSummary {
  const filesDone = marks.next + marks.done.length
  return { ...counts, files, filesDone, complete: finished, before, scored, seconds }
}

/** An output without a run beside it is somebody else's. @throws BatchStateError */
async function checkFree({ target, stored, out, errorsPath }: BatchOptions): Promise<void> {
  await stored?.checkFree()
  for (const path of target.kind === 'file' ? [target.path, errorsPath] : [errorsPath])
    if (await exists(path))
      throw new BatchStateError(
        `${path} is there, and no run of this output is known that could go on`,
        `Name another --out, move it away, or write over it with --restart (--out ${out}).`,
      )
}

async function forget({ target, stored, errorsPath }: BatchOptions, paths: Paths): Promise<void> {
  await stored?.forget()
  const ofRun = [paths.state, paths.list, paths.work, errorsPath]
  for (const path of target.kind === 'file' ? [...ofRun, target.path] : ofRun) await rm(path, { force: true })
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

async function isEmpty(path: string): Promise<boolean> {
  return stat(path).then(
    ({ size }) => size === 0,
    () => false,
  )
}
