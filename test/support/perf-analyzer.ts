import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runClient, tritonClients } from './triton-clients.js'

/** A row of the report, by column; latencies are microseconds. */
export type PerfRow = Readonly<Record<string, string>>

export type PerfReport = Readonly<{ rows: readonly PerfRow[]; said: string }>

/**
 * Runs perf_analyzer, unmodified. Measurements are short and need not be steady: tests look at what is there, benches raise both.
 *
 * @param own - arguments of the test; they come after those given here.
 */
export async function perfAnalyzer(own: readonly string[], timeoutMs = 120_000): Promise<PerfReport> {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-perf-'))
  const file = join(dir, 'report.csv')
  const short = ['--measurement-mode', 'count_windows', '--measurement-request-count', '50', '-p', '1000']
  const unsteady = ['--stability-percentage', '999', '--max-trials', '3']
  try {
    const args = [...short, ...unsteady, '-f', file, ...own]
    const said = await runClient(tritonClients?.perfAnalyzer ?? '', args, timeoutMs)
    const [header = '', ...lines] = readFileSync(file, 'utf8').trim().split('\n')
    const columns = header.split(',')
    const rows = lines.map((line) =>
      Object.fromEntries(line.split(',').map((value, index) => [columns[index] ?? '', value])),
    )
    return { rows, said }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
