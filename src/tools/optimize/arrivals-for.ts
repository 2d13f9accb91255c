import { existsSync } from 'node:fs'
import type { ServerLogin } from '../client/server-socket.js'
import { serverTarget } from '../client/server-url.js'
import { GantryApi } from '../client/gantry-api.js'
import { writeReportFile } from '../report/report-file.js'
import { type ArrivalTrace, gapsOf, readTrace, traceText } from './arrival-trace.js'
import { recordTrace } from './record-trace.js'

/** RecordedArrivals as a load. */
export type RecordedArrivals = Readonly<{ gapsMs: readonly number[]; perSecond: number; cameras: number }>

/**
 * The arrivals that a search is made for: those of a file, or of a running service, which are recorded once and kept.
 *
 * @param kept - file that recorded arrivals are kept in: the search that goes on takes them from there.
 * @returns undefined where none were asked for.
 * @throws OptimizeSettingError, SystemLimitError, ServerUnreachableError, ServerTokenError; AbortError
 */
export async function arrivalsFor(
  trace: string | undefined,
  login: ServerLogin,
  seconds: number,
  kept: string,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<RecordedArrivals | undefined> {
  if (trace === undefined) return undefined
  const recorded = /^https?:\/\//i.test(trace)
    ? await ofService(trace, login, seconds, kept, signal, progress)
    : readTrace(trace)
  const gapsMs = gapsOf(recorded)
  const wholeMs = gapsMs.reduce((sum, gap) => sum + gap, 0)
  return { gapsMs, perSecond: (1e3 * gapsMs.length) / wholeMs, cameras: recorded.cameras.length }
}

async function ofService(
  url: string,
  { token, trust }: ServerLogin,
  seconds: number,
  kept: string,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<ArrivalTrace> {
  if (existsSync(kept)) return readTrace(kept)
  const api = new GantryApi(serverTarget(url, 'http'), token, trust)
  const trace = await recordTrace(api, seconds, signal, progress)
  writeReportFile(kept, traceText(trace))
  return trace
}
