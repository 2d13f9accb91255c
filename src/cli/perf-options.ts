import { levelRange } from '../tools/perf/level-range.js'
import { shapeOption } from '../tools/perf/input-data.js'
import type { PerfOptions } from '../tools/perf/run-perf.js'
import type { PerfLoad } from '../tools/perf/perf-target.js'
import { UsageError } from './failure.js'
import { numberBetween, wholeNumber } from './numbers.js'
import { type ServerFlags, serverLogin } from './server-options.js'
import type { Terminal } from './terminal.js'

/** What the command line of `gantry perf` says. */
export type PerfFlags = ServerFlags &
  Readonly<{
    model?: string
    modelVersion?: string
    protocol?: 'http' | 'grpc'
    concurrency?: string
    requestRate?: string
    requestDistribution: 'constant' | 'poisson'
    maxUnderWay: string
    cameras?: string
    fps: string
    clip?: string
    batch: string
    shape?: readonly string[]
    inputData: string
    jsonTensors?: true
    seed: string
    windowMs: string
    stability: string
    maxWindows: string
    percentile?: string
    latencyThreshold?: string
    binarySearch?: true
    csv?: string
    save?: string
    report?: string
    compare?: readonly string[]
  }>

/** @throws UsageError, PerfSettingError: both `GANTRY_USAGE` */
export function perfOptions(flags: PerfFlags, env: Terminal['env']): PerfOptions {
  const { latencyThreshold, binarySearch, percentile, modelVersion, model } = flags
  if (binarySearch === true && latencyThreshold === undefined)
    throw new UsageError('--binary-search looks for a limit', 'Add --latency-threshold MS.')
  return {
    url: flags.url,
    client: {
      protocol: flags.protocol,
      ...serverLogin(flags, env),
      form: flags.jsonTensors === true ? 'json' : undefined,
    },
    model: model === undefined ? undefined : { name: model, version: modelVersion },
    load: loadOf(flags),
    batchSize: wholeNumber(flags.batch, '-b', 1, 65_536),
    shapes: new Map((flags.shape ?? []).map(shapeOption)),
    inputData: flags.inputData,
    seed: wholeNumber(flags.seed, '--seed', 0, 2 ** 32 - 1),
    windowMs: wholeNumber(flags.windowMs, '--window-ms', 50, 3_600_000),
    within: numberBetween(flags.stability, '--stability', 0.1, 1_000) / 100,
    mostWindows: wholeNumber(flags.maxWindows, '--max-windows', 1, 1_000),
    quantile: percentile === undefined ? undefined : Number(percentile) / 100,
    limitMs:
      latencyThreshold === undefined
        ? undefined
        : numberBetween(latencyThreshold, '--latency-threshold', 0.001, 3_600_000),
    byHalves: binarySearch === true,
  }
}

/** @throws UsageError unless there are two */
export function compareOptions({ compare = [] }: PerfFlags): readonly [string, string] {
  const [first, second] = compare
  if (first === undefined || second === undefined || compare.length > 2)
    throw new UsageError(`--compare got ${compare.length} files`, 'Name two files that --save has written.')
  return [first, second]
}

function loadOf(flags: PerfFlags): PerfLoad {
  const { concurrency, requestRate, cameras, requestDistribution: distribution, clip: source } = flags
  const given = Object.entries({
    '--concurrency': concurrency,
    '--request-rate': requestRate,
    '--cameras': cameras,
  })
    .filter(([, text]) => text !== undefined)
    .map(([flag]) => flag)
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} are two loads`, 'Choose one of them.')
  if (cameras !== undefined)
    return {
      kind: 'cameras',
      range: levelRange(cameras, { flag: '--cameras', whole: true, most: 1_024, step: () => 1 }),
      fps: numberBetween(flags.fps, '--fps', 0.01, 120),
      source,
    }
  if (source !== undefined)
    throw new UsageError('--clip is of cameras', 'Add --cameras N, or use --input-data FILE.')
  if (requestRate === undefined) {
    const rules = { flag: '--concurrency', whole: true, most: 4_096, step: () => 1 }
    return { kind: 'concurrency', range: levelRange(concurrency ?? '1', rules) }
  }
  const step = (first: number, last: number) => (last - first) / 10 || 1
  return {
    kind: 'rate',
    range: levelRange(requestRate, { flag: '--request-rate', whole: false, most: 1_000_000, step }),
    distribution,
    mostUnderWay: wholeNumber(flags.maxUnderWay, '--max-under-way', 1, 16_384),
  }
}
