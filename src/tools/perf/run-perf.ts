import { type GantryError, toErrorRecord } from '../../errors.js'
import { openClient, type ClientOptions } from '../client/open-client.js'
import { searchByHalves, searchInTurn } from './level-search.js'
import { type LevelOutcome, type LevelResult, measureLevel, type WindowSeen } from './measure-level.js'
import { PerfSettingError } from './perf-errors.js'
import { type LatencyLimit, levelText, type PerfReport } from './perf-report.js'
import {
  cameraTarget,
  modelTarget,
  type PerfLoad,
  type PerfTarget,
  type TargetOptions,
} from './perf-target.js'
import { GantryApi } from '../client/gantry-api.js'
import { serverTarget } from '../client/server-url.js'

export type PerfOptions = TargetOptions &
  Readonly<{
    url: string | undefined
    client: ClientOptions
    windowMs: number
    mostWindows: number
    /** Largest difference of the windows that agree, as a fraction. */
    within: number
    /** 0..1: of the latency that must be steady and keeps the limit; undefined: the mean must be steady, and p99 keeps the limit. */
    quantile: number | undefined
    limitMs: number | undefined
    byHalves: boolean
  }>

/** Told while it runs. */
export type PerfListener = Readonly<{
  begun(target: PerfTarget): void
  window(level: number, seen: Parameters<WindowSeen>[0]): void
  level(result: LevelResult): void
}>

const shownQuantile = (quantile: number) => `p${Number((quantile * 100).toFixed(3))}`

/**
 * Measures a server over the levels of a load.
 *
 * @param signal - ends it with what there is: the report says so.
 * @throws what keeps it from beginning: ServerUnreachableError, RemoteModelMissingError, PerfSettingError and others. What goes wrong
 *   later is the report's `fault`, beside what was measured until then.
 */
export async function runPerf(
  options: PerfOptions,
  signal: AbortSignal,
  listener: PerfListener,
): Promise<PerfReport> {
  const target = await targetOf(options, signal)
  try {
    listener.begun(target)
    return await measured(target, options, signal, listener)
  } finally {
    target.close()
  }
}

async function targetOf(options: PerfOptions, signal: AbortSignal): Promise<PerfTarget> {
  const { url, client: settings, load, model } = options
  if (load.kind === 'cameras' && model === undefined) {
    const api = new GantryApi(serverTarget(url, settings.protocol), settings.token, settings.trust)
    return cameraTarget(api, load, signal)
  }
  if (model === undefined)
    throw new PerfSettingError(
      'no model was named',
      'Name one with -m MODEL; `gantry models list --url URL` shows them.',
    )
  return modelTarget(await openClient(url, settings), model, options, signal)
}

async function measured(
  target: PerfTarget,
  options: PerfOptions,
  signal: AbortSignal,
  listener: PerfListener,
): Promise<PerfReport> {
  const { load, windowMs, mostWindows, within, quantile, limitMs, byHalves } = options
  const at = new Date().toISOString()
  const settings = { windowMs, mostWindows, stability: { within, quantile }, batchSize: target.batchSize }
  const levels: LevelResult[] = []
  let fault: GantryError | undefined
  const measure = async (level: number) => {
    const { result, fault: broken } = await attempt(async () => {
      const { load: made, read } = target.at(level)
      const own = { ...settings, name: levelText(load.kind, level) }
      return measureLevel(level, made, own, read, signal, (seen) => listener.window(level, seen))
    })
    if (result !== undefined) {
      levels.push(result)
      listener.level(result)
    }
    if (signal.aborted) return 'ended'
    fault = broken
    if (fault !== undefined || result === undefined) return 'ended'
    return limitMs === undefined || latencyMs(result, quantile) <= limitMs ? 'kept' : 'broken'
  }
  await (byHalves ? searchByHalves : searchInTurn)(load.range, measure)
  levels.sort((a, b) => a.level - b.level)
  return {
    gantryPerf: 1,
    at,
    ...target.facts,
    batchSize: target.batchSize,
    windows: {
      ms: windowMs,
      within,
      most: mostWindows,
      steadyBy: quantile === undefined ? 'mean latency' : shownQuantile(quantile),
    },
    ...(limitMs !== undefined && { limit: limitOf(levels, limitMs, quantile) }),
    levels,
    notes: notesOf(levels, load),
    interrupted: signal.aborted,
    ...(fault !== undefined && { fault: toErrorRecord(fault) }),
  }
}

/** What keeps a level from starting ends the run as what happens in it does. */
async function attempt(measure: () => Promise<LevelOutcome>): Promise<LevelOutcome> {
  try {
    return await measure()
  } catch (error) {
    return { result: undefined, fault: error as GantryError }
  }
}

function latencyMs({ latencyUs }: LevelResult, quantile: number | undefined): number {
  const names = { 0.5: 'p50', 0.9: 'p90', 0.95: 'p95', 0.99: 'p99' } as const
  return latencyUs[names[(quantile ?? 0.99) as keyof typeof names]] / 1e3
}

function limitOf(
  levels: readonly LevelResult[],
  limitMs: number,
  quantile: number | undefined,
): LatencyLimit {
  const kept = levels.filter((result) => latencyMs(result, quantile) <= limitMs)
  return { limitMs, of: shownQuantile(quantile ?? 0.99), highest: kept.at(-1)?.level ?? null }
}

function notesOf(levels: readonly LevelResult[], { kind }: PerfLoad): readonly string[] {
  const list = (some: readonly LevelResult[]) => some.map(({ level }) => level).join(', ')
  const unsteady = levels.filter(({ steady, cutShort }) => !steady && !cutShort)
  const failed = levels.filter(({ errors }) => errors > 0)
  // A tenth of a request's time spent waiting for its turn.
  const late = levels.filter(
    ({ splitUs, latencyUs }) => kind === 'rate' && splitUs.clientWait > latencyUs.mean / 10,
  )
  // One thread sends and receives.
  const busy = levels.filter(({ clientCores }) => clientCores > 0.9)
  return [
    ...(busy.length > 0
      ? [`At ${list(busy)} this client was busy all the time: the server may do more than it could ask for.`]
      : []),
    ...(unsteady.length > 0
      ? [`Not steady at ${list(unsteady)}: the last windows differ by more than was allowed; measure longer.`]
      : []),
    ...failed.map(
      ({ level, errors, requests, firstError }) =>
        `At ${level}: ${errors} of ${errors + requests} requests failed: ${firstError ?? ''}`,
    ),
    ...(late.length > 0
      ? [
          `At ${list(late)} requests waited for their turn more than a tenth of their time: the server, or this client, does not keep up with the rate.`,
        ]
      : []),
  ]
}
