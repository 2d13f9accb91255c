import type { LevelResult } from './measure-level.js'
import type { LoadKind, PerfReport } from './perf-report.js'

const levelColumns: Readonly<Record<LoadKind, string>> = {
  concurrency: 'Concurrency',
  rate: 'Request Rate',
  cameras: 'Cameras',
}

/**
 * The report with the columns of perf_analyzer, times in whole microseconds, rows by throughput. `Cameras` has no counterpart there.
 *
 * @see triton-inference-server/perf_analyzer, ReportWriter::GenerateReport
 */
export function perfCsv({ load, levels }: Pick<PerfReport, 'load' | 'levels'>): string {
  const hasServer = levels.some(({ splitUs }) => splitUs.server !== undefined)
  const hasCache = levels.some(({ splitUs }) => splitUs.server?.cacheHit !== undefined)
  const columns = [
    levelColumns[load.kind],
    'Inferences/Second',
    'Client Send',
    ...(hasServer
      ? [
          'Network+Server Send/Recv',
          'Server Queue',
          'Server Compute Input',
          'Server Compute Infer',
          'Server Compute Output',
        ]
      : []),
    ...(hasCache ? ['Server Cache Hit', 'Server Cache Miss'] : []),
    'Client Recv',
    ...[50, 90, 95, 99].map((percentile) => `p${percentile} latency`),
  ]
  const rows = [...levels]
    .sort((a, b) => a.inferencesPerSecond - b.inferencesPerSecond)
    .map((level) => rowOf(level, hasServer, hasCache))
  return [columns, ...rows].map((cells) => `${cells.join(',')}\n`).join('')
}

function rowOf(
  { level, inferencesPerSecond, latencyUs, splitUs }: LevelResult,
  hasServer: boolean,
  hasCache: boolean,
): readonly (string | number)[] {
  const { clientWait, clientSend, network, server, clientReceive } = splitUs
  const part = (us: number | undefined) => Math.floor(us ?? 0)
  return [
    level,
    Number(inferencesPerSecond.toPrecision(6)),
    // The wait for its turn is the client's.
    part(clientWait + clientSend),
    ...(hasServer
      ? [network, server?.queue, server?.computeInput, server?.computeInfer, server?.computeOutput].map(part)
      : []),
    ...(hasCache ? [server?.cacheHit, server?.cacheMiss].map(part) : []),
    part(clientReceive),
    ...[latencyUs.p50, latencyUs.p90, latencyUs.p95, latencyUs.p99].map(part),
  ]
}
