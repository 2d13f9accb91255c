import '../../lifecycle/catch-warnings.js'
import { writeSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import { toErrorRecord } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { silentLog } from '../../lifecycle/log.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { ModelOpener } from '../../serving/model-opener.js'
import { ConcurrencyLoad } from '../perf/concurrency-load.js'
import { shapedInputs } from '../perf/input-data.js'
import { type Load, RequestRing } from '../perf/load.js'
import { measureLevel, type LevelResult } from '../perf/measure-level.js'
import { NothingMeasuredError } from '../perf/perf-errors.js'
import { RateLoad } from '../perf/rate-load.js'
import { requestInputs } from '../perf/request-inputs.js'
import type { ServerCounters } from '../perf/server-split.js'
import { ModelLane } from './model-lane.js'
import type { TrialAnswer, TrialTask } from './trial-task.js'

/**
 * Entry of a trial: a model in a process of its own, so that what it takes of memory and of the processor is its own, and what it dies of
 * is no more than a trial. It is opened, scheduled and run as the model server does it.
 */

/** A trace is the load of cameras: requests that wait are not held back. */
const mostUnderWay = 4_096
/** Windows after which a trial that is far behind ends. */
const leastWindows = 2

function answer(given: TrialAnswer): void {
  writeSync(1, `${JSON.stringify(given)}\n`)
}

async function opened({ name, versionDir, config, provider }: TrialTask): Promise<LoadedModel> {
  const log = silentLog()
  const opener = new ModelOpener({
    backends: new BackendRegistry([
      onnxRuntimeBackend({ providers: [provider], devices: [0], intraOpThreads: 1 }),
    ]),
    find: () => undefined,
    cache: undefined,
    onHung: (reason) => {
      throw new Error(reason)
    },
    log,
  })
  return opener.open({ name, version: '1', config, versionDir, log })
}

async function measured(task: TrialTask, model: LoadedModel): Promise<void> {
  const { load, inputData, shapes, seed, windowMs, mostWindows, limitMs } = task
  const signal = new AbortController().signal
  const maxBatchSize = model.config.max_batch_size ?? 0
  const batch = maxBatchSize > 0 ? 1 : undefined
  const shape = { batchSize: 1, shapes: new Map(Object.entries(shapes)) }
  const inputs = shapedInputs(model, { maxBatchSize, steps: [] }, shape)
  const requests = await requestInputs(inputs, { data: inputData, seed, batchSize: batch }, signal)
  const lane = () => new ModelLane(model)
  const settings = {
    name: task.name,
    windowMs,
    mostWindows,
    stability: { within: 0.1, quantile: undefined },
    batchSize: 1,
  }
  const run = async (level: number, made: Load): Promise<LevelResult> => {
    const early = new AbortController()
    const { result, fault } = await measureLevel(
      level,
      made,
      settings,
      () => counters(model),
      early.signal,
      (seen) => {
        if (seen.windows >= leastWindows && seen.perSecond < (task.stopBelow ?? 0)) early.abort()
      },
    )
    if (result === undefined) throw fault ?? new NothingMeasuredError(settings.name, undefined)
    if (result.errors > 0 && fault !== undefined) throw fault
    answer({ kind: 'level', result })
    return result
  }
  if (load.kind === 'trace') {
    const { gapsMs } = load
    const perSecond = (1e3 * gapsMs.length) / gapsMs.reduce((sum, gap) => sum + gap, 0)
    await run(
      perSecond,
      new RateLoad({ arrivals: { gapsMs }, mostUnderWay }, lane, new RequestRing(requests)),
    )
    return
  }
  for (const level of load.levels) {
    const { cutShort, latencyUs } = await run(
      level,
      new ConcurrencyLoad(level, lane, new RequestRing(requests)),
    )
    if (cutShort || latencyUs.p99 / 1e3 > (limitMs ?? Infinity)) return
  }
}

function counters(model: LoadedModel): Promise<ServerCounters> {
  const { inference, ...counted } = model.statistics()
  return Promise.resolve({ model: [{ ...counted, parts: inference }], steps: [] })
}

// Nobody reads it any more: whoever wanted the trial is gone.
process.stdout.on('error', () => process.exit(1))
try {
  const task = JSON.parse(await text(process.stdin)) as TrialTask
  const beganMs = nowMs()
  const model = await opened(task)
  answer({ kind: 'loaded', loadMs: nowMs() - beganMs })
  await measured(task, model)
  answer({ kind: 'done', peakBytes: process.resourceUsage().maxRSS * 1024 })
} catch (error) {
  answer({ kind: 'failed', error: toErrorRecord(error) })
}
// Threads of the model are not waited for.
process.exit(0)
