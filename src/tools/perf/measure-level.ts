import type { GantryError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay, unlessAborted } from '../../lifecycle/delay.js'
import { ServerUnreachableError } from '../client/client-errors.js'
import { quantileOf, type LatencySummary, latencySummary } from './latencies.js'
import type { Load, RequestEnded } from './load.js'
import {
  isSteady,
  MeasurementWindow,
  mergedWindow,
  type StabilityRule,
  steadyWindows,
} from './measurement-window.js'
import { NothingMeasuredError } from './perf-errors.js'
import type { CountersReader, ServerCounters, ServerSplit } from './server-split.js'
import { splitBetween } from './server-split.js'

export type MeasureSettings = Readonly<{
  /** Of the level, for people. */
  name: string
  windowMs: number
  /** Windows after which a level is given up as unsteady. */
  mostWindows: number
  stability: StabilityRule
  /** Rows of a request that are inferences. */
  batchSize: number
}>

/** Mean microseconds of the parts of a request; they add up to its mean latency. What the server does not tell is left out. */
export type RequestSplit = Readonly<{
  /** From when it should have been sent to when it was; loads with intended times alone. */
  clientWait: number
  clientSend: number
  /** What is not accounted for: the way there and back, and the server outside of the model; all of it without statistics. */
  network: number
  server: ServerSplit | undefined
  clientReceive: number
}>

/** What was measured at one level of a load. Latencies are microseconds. */
export type LevelResult = Readonly<{
  /** Requests under way, requests per second, or cameras. */
  level: number
  /** The last three windows agreed. */
  steady: boolean
  /** It was cut short: by a signal, or by a server that stopped. */
  cutShort: boolean
  windows: number
  seconds: number
  requests: number
  errors: number
  /** What the first of them said; absent without any. */
  firstError?: string
  /** Pictures for which there was no time; loads of cameras alone. */
  dropped?: number
  inferencesPerSecond: number
  /** Processor time of this process over time, of all windows: near 1 the client is what is measured. */
  clientCores: number
  latencyUs: LatencySummary
  /** From when requests should have been sent to when they were. */
  lagUs?: LatencySummary
  splitUs: RequestSplit
}>

/** Told after each window of a level. */
export type WindowSeen = (seen: Readonly<{ windows: number; perSecond: number; p99Us: number }>) => void

export type LevelOutcome = Readonly<{
  /** Undefined where nothing ended. */
  result: LevelResult | undefined
  /** Why no further level can be measured. */
  fault: GantryError | undefined
}>

/**
 * Runs a load in windows, one directly after another, until the last three agree or there were too many. The result is of those three
 * together.
 *
 * @param signal - ends it with what there is.
 */
export async function measureLevel(
  level: number,
  load: Load,
  settings: MeasureSettings,
  read: CountersReader,
  signal: AbortSignal,
  seen: WindowSeen = () => undefined,
): Promise<LevelOutcome> {
  let window = new MeasurementWindow()
  const lost = new AbortController()
  let fault: GantryError | undefined
  const taken: {
    window: MeasurementWindow
    before: ServerCounters | undefined
    after: ServerCounters | undefined
  }[] = []
  const figures: { perSecond: number; latency: number }[] = []
  let steady = false
  let cutShort = false
  let clientCores = 0
  try {
    const ended: RequestEnded = (sinceMs, outcome) => {
      window.add(sinceMs, outcome)
      if (!(outcome.error instanceof ServerUnreachableError)) return
      fault ??= outcome.error
      lost.abort()
    }
    await unlessAborted(Promise.resolve(load.start(ended)), signal)
    // What was lost until now is of the start.
    await load.takeDropped?.()
    window = new MeasurementWindow()
    let fromMs = nowMs()
    const beganMs = fromMs
    const cpuBefore = process.cpuUsage()
    let before = await counted(read)
    const either = AbortSignal.any([signal, lost.signal])
    while (!steady && !cutShort && taken.length < settings.mostWindows) {
      cutShort = !(await delay(settings.windowMs, either))
      const over = window
      window = new MeasurementWindow()
      const untilMs = nowMs()
      over.durationMs = untilMs - fromMs
      const { user, system } = process.cpuUsage(cpuBefore)
      clientCores = (user + system) / 1e3 / (untilMs - beganMs)
      over.dropped = (await load.takeDropped?.()) ?? 0
      fromMs = untilMs
      const after = fault === undefined ? await counted(read) : undefined
      taken.push({ window: over, before, after })
      before = after
      const sorted = over.latencies.sorted()
      const { quantile } = settings.stability
      const latency = quantile === undefined ? over.latencies.mean : quantileOf(sorted, quantile)
      figures.push({ perSecond: over.perSecond, latency })
      seen({
        windows: taken.length,
        perSecond: over.perSecond * settings.batchSize,
        p99Us: quantileOf(sorted, 0.99) * 1e3,
      })
      steady = isSteady(figures, settings.stability.within)
      // Whoever refuses every request of a window will go on doing so.
      if (over.requests === 0 && over.errors > 0 && !cutShort) {
        fault ??= over.firstError
        cutShort = true
      }
      if (isSilent(taken)) {
        fault ??= new NothingMeasuredError(settings.name, undefined)
        cutShort = true
      }
    }
  } finally {
    await load.stop()
  }
  // A window that was cut short is a part of one, and better than none.
  const whole = cutShort && taken.length > 1 ? taken.slice(0, -1) : taken
  const used = whole.slice(0, lastAnswered(whole) + 1).slice(-steadyWindows)
  const merged = mergedWindow(used.map(({ window: one }) => one))
  if (cutShort) {
    const last = taken.at(-1)?.window
    merged.firstError ??= last?.firstError
    if (last !== undefined && whole !== taken) merged.errors += last.errors
  }
  if (merged.requests === 0) {
    const why = fault ?? merged.firstError
    return { result: undefined, fault: why ?? new NothingMeasuredError(settings.name, undefined) }
  }
  const [first, last] = [used[0]?.before, used.findLast(({ after }) => after !== undefined)?.after]
  const server = first === undefined || last === undefined ? undefined : splitBetween(first, last)
  const result = levelResult(level, merged, server, settings)
  return { result: { ...result, steady, cutShort, clientCores, windows: taken.length }, fault }
}

type Taken = Readonly<{ window: MeasurementWindow }>

/** Windows without an answer after one with some: the server hangs. A first answer may take long. */
function isSilent(taken: readonly Taken[]): boolean {
  const answered = lastAnswered(taken)
  return answered >= 0 && taken.length - 1 - answered >= steadyWindows
}

function lastAnswered(taken: readonly Taken[]): number {
  return taken.findLastIndex(({ window }) => window.requests > 0)
}

/** A server that stops is found out by its load. */
async function counted(read: CountersReader): Promise<ServerCounters | undefined> {
  try {
    return await read()
  } catch {
    return undefined
  }
}

function levelResult(
  level: number,
  window: MeasurementWindow,
  server: ServerSplit | undefined,
  { batchSize }: MeasureSettings,
): Omit<LevelResult, 'steady' | 'cutShort' | 'clientCores' | 'windows'> {
  const { latencies, lags, requests, errors, firstError, dropped } = window
  const latencyUs = latencySummary(latencies, 1e3)
  const lagUs = latencySummary(lags, 1e3)
  const clientWait = lagUs.mean
  const clientSend = (window.sendMs / requests) * 1e3
  const clientReceive = (window.receiveMs / requests) * 1e3
  const inServer = server === undefined ? 0 : Object.values(server).reduce((sum, part) => sum + part, 0)
  return {
    level,
    seconds: window.durationMs / 1e3,
    requests,
    errors,
    ...(firstError !== undefined && { firstError: firstError.message }),
    ...(dropped > 0 && { dropped }),
    inferencesPerSecond: window.perSecond * batchSize,
    latencyUs,
    ...(lagUs.max > 0 && { lagUs }),
    splitUs: {
      clientWait,
      clientSend,
      network: Math.max(0, latencyUs.mean - clientWait - clientSend - clientReceive - inServer),
      server,
      clientReceive,
    },
  }
}
