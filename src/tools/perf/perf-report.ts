import { z } from 'zod'
import { readTextFile } from '../../config/text-file.js'
import type { ErrorRecord } from '../../errors.js'
import type { ArrivalDistribution } from './arrivals.js'
import type { LevelResult } from './measure-level.js'
import { PerfSettingError } from './perf-errors.js'

/** What a level is a number of. */
export const loadKinds = ['concurrency', 'rate', 'cameras'] as const
export type LoadKind = (typeof loadKinds)[number]

/** How latencies were taken, and from when. */
export type LoadFacts = Readonly<{
  kind: LoadKind
  /** Of rates alone. */
  distribution?: ArrivalDistribution
  /** Of cameras alone: frames per second of each, and where they are decoded. */
  fps?: number
  decodedBy?: 'service' | 'client'
}>

/** The limit that was looked for. */
export type LatencyLimit = Readonly<{ limitMs: number; of: string; highest: number | null }>

/** A run, as it is saved and compared. */
export type PerfReport = Readonly<{
  gantryPerf: 1
  at: string
  url: string
  server: Readonly<{ name: string; version: string }>
  model: string
  protocol: string
  inputs: readonly Readonly<{ name: string; datatype: string; shape: readonly number[] }>[]
  inputData: string
  batchSize: number
  load: LoadFacts
  windows: Readonly<{ ms: number; within: number; most: number; steadyBy: string }>
  limit?: LatencyLimit
  /** By level. */
  levels: readonly LevelResult[]
  /** What a reader must know, one sentence each. */
  notes: readonly string[]
  /** It was ended by a signal. */
  interrupted: boolean
  /** Why it ended before its time. */
  fault?: ErrorRecord
}>

/** What a level is, for people. */
export function loadText({ kind, distribution, fps, decodedBy }: LoadFacts): string {
  switch (kind) {
    case 'concurrency':
      return 'requests under way'
    case 'rate':
      return `requests per second, ${distribution ?? 'constant'}`
    case 'cameras':
      return `cameras of ${fps ?? 0} frames per second, decoded by the ${decodedBy ?? 'client'}`
    default:
      return kind satisfies never
  }
}

const levelWords: Readonly<Record<LoadKind, string>> = {
  concurrency: 'under way',
  rate: 'requests/s',
  cameras: 'cameras',
}

/** `4 under way`, `100 requests/s`, `8 cameras`. */
export function levelText(kind: LoadKind, level: number): string {
  return `${level} ${levelWords[kind]}`
}

/** What latency is counted from. */
export function latencyText({ kind, decodedBy }: LoadFacts): string {
  switch (kind) {
    case 'concurrency':
      return 'Latency is from when a request is sent to the last byte of its answer. A server that stands still is sent nothing meanwhile, so its pauses weigh less than they would on users: load by rate for those.'
    case 'rate':
      return 'Latency is from when a request was due, by its schedule, to the last byte of its answer, also where it could be sent only later (coordinated omission is accounted for).'
    case 'cameras':
      return decodedBy === 'service'
        ? 'Latency is from the capture of a frame to the publishing of its result, by the clock of the service.'
        : 'Latency is from when a frame has left the decoder to the last byte of its answer. Of frames that come while one is under way the newest waits, and others are counted as dropped.'
    default:
      return kind satisfies never
  }
}

const savedSchema = z.looseObject({
  gantryPerf: z.literal(1),
  url: z.string(),
  model: z.string(),
  load: z.looseObject({ kind: z.enum(loadKinds) }),
  levels: z.array(
    z.looseObject({
      level: z.number(),
      steady: z.boolean(),
      inferencesPerSecond: z.number(),
      latencyUs: z.looseObject({ p50: z.number(), p90: z.number(), p95: z.number(), p99: z.number() }),
    }),
  ),
})
export type SavedReport = z.infer<typeof savedSchema>

/** Reads a report that was saved. @throws PerfSettingError `GANTRY_USAGE` */
export function readReport(path: string): SavedReport {
  const wrong = (problem: string) =>
    new PerfSettingError(
      `${path} is no report of gantry perf: ${problem}`,
      'Name a file written with --save.',
    )
  let json: unknown
  try {
    json = JSON.parse(readTextFile(path))
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
  const { data, error } = savedSchema.safeParse(json)
  if (data === undefined) throw wrong(z.prettifyError(error).split('\n')[0] ?? '')
  return data
}
