/**
 * `gantry perf` beside perf_analyzer on the same server, in turn: requests/s, p50, p99 and the processor time of both clients, by HTTP and
 * gRPC and by requests under way. Each turn begins with the other one. `spread` is how far turns of perf_analyzer lie apart: its p99 at
 * the third quarter of the turns over that at the first. Ratios are of gantry perf to perf_analyzer: their median, and the range that
 * holds 95 of 100 medians of turns drawn anew.
 *
 *     npx tsx test/bench/perf-agrees.bench.ts [turns] [window in ms] [concurrencies] [detector|kilobyte|picture]
 *
 * `detector`: the shipped one, by a server that has a processor of its own, as the clients have the other one, so that what a client costs
 * is not taken from what it measures. The others take next to no time, and whoever costs less measures more.
 *
 * The processor time has the start of each client in it, for Node's some 0.7 s, so windows must be long.
 *
 * A short form, for whether it runs: `npx tsx test/bench/perf-agrees.bench.ts 1 300 1`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seededRandom } from '../../src/tools/perf/arrivals.js'
import { mainScript } from '../support/gantry-process.js'
import { tritonClients } from '../support/triton-clients.js'
import { quantile, report } from './bench.js'
import { grpcAddress, tinyRepository, tinyService } from './tiny-model.js'

const turns = Number(process.argv[2] ?? 7)
const windowMs = Number(process.argv[3] ?? 5_000)
const concurrencies = (process.argv[4] ?? '1,4,16').split(',').map(Number)
const inputs = ['detector', 'kilobyte', 'picture'] as const
const input = inputs.find((name) => name === process.argv[5]) ?? 'detector'
const [ofServer, ofClients] = input === 'detector' ? (['0', '1'] as const) : []
/** As many as must agree, so that both measure for the same time. */
const windows = 3

const clients = ['gantry', 'analyzer'] as const
type ClientName = (typeof clients)[number]
type Turn = Readonly<{ perSecond: number; p50: number; p99: number; cpuUs: number }>

if (tritonClients === undefined)
  throw new Error('perf_analyzer is not installed: node scripts/setup.mjs --tests')
const { perfAnalyzer } = tritonClients
const dir = mkdtempSync(join(tmpdir(), 'gantry-perf-agrees-'))

function commandOf(
  client: ClientName,
  protocol: string,
  address: string,
  concurrency: number,
  csv: string,
): string[] {
  const where = ['-m', input === 'detector' ? 'ppe_detect' : 'tiny', '-i', protocol, '-u', address]
  return client === 'gantry'
    ? [
        process.execPath,
        mainScript,
        'perf',
        ...where,
        '--concurrency',
        String(concurrency),
        '--window-ms',
        String(windowMs),
      ].concat(['--max-windows', String(windows), '--stability', '999', '--csv', csv, '--quiet'])
    : [perfAnalyzer, ...where, '--concurrency-range', String(concurrency), '-p', String(windowMs)].concat([
        '-r',
        String(windows),
        '-s',
        '999',
        '-f',
        csv,
      ])
}

const pinned = (processor: string | undefined) =>
  processor === undefined ? [] : ['taskset', '-c', processor]

/** Runs a client to its end; its processor time is that of its process and its threads, start included. */
async function turnOf(
  client: ClientName,
  protocol: string,
  address: string,
  concurrency: number,
): Promise<Turn> {
  const csv = join(dir, `${client}.csv`)
  const timed = join(dir, 'cpu')
  // The shell tells the times of what it waited for.
  const script = '"$@" > /dev/null; code=$?; times > "$TIMES"; exit $code'
  const child = spawn(
    'bash',
    ['-c', script, 'bash', ...pinned(ofClients), ...commandOf(client, protocol, address, concurrency, csv)],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, TIMES: timed },
    },
  )
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`${client} ended with ${String(code)}:\n${said}`)
  const [header = '', row = ''] = readFileSync(csv, 'utf8').trim().split('\n')
  const values = row.split(',')
  const at = (column: string) => Number(values[header.split(',').indexOf(column)])
  const perSecond = at('Inferences/Second')
  const requests = (perSecond * (windows * windowMs)) / 1e3
  const [, ofChildren = ''] = readFileSync(timed, 'utf8').trim().split('\n')
  return {
    perSecond,
    p50: at('p50 latency'),
    p99: at('p99 latency'),
    cpuUs: (secondsIn(ofChildren) / requests) * 1e6,
  }
}

/** `0m1.250s 0m0.170s` together. */
function secondsIn(times: string): number {
  return [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  )
}

const random = seededRandom(1)

/** Ratio of the medians of two figures, and where 95 of 100 such ratios of turns drawn anew lie. */
function ratio(ours: number[], theirs: number[]): readonly [middle: number, low: number, high: number] {
  const drawn = (values: readonly number[]) => values.map(() => values[Math.floor(random() * values.length)]!)
  const again = Array.from({ length: 2_000 }, () => quantile(drawn(ours), 0.5) / quantile(drawn(theirs), 0.5))
  return [quantile(ours, 0.5) / quantile(theirs, 0.5), quantile(again, 0.025), quantile(again, 0.975)]
}

function tell(
  protocol: string,
  concurrency: number,
  seen: Readonly<Record<ClientName, readonly Turn[]>>,
): void {
  const of = (client: ClientName, name: keyof Turn) => seen[client].map((turn) => turn[name])
  const figures = (['perSecond', 'p50', 'p99', 'cpuUs'] as const).flatMap((name) => {
    const [middle, low, high] = ratio(of('gantry', name), of('analyzer', name))
    return [
      [`${name}Ratio`, middle],
      [`${name}RatioFrom`, low],
      [`${name}RatioTo`, high],
      [`${name}Gantry`, quantile(of('gantry', name), 0.5)],
      [`${name}Analyzer`, quantile(of('analyzer', name), 0.5)],
    ] as const
  })
  const p99 = of('analyzer', 'p99')
  report(`gantry perf beside perf_analyzer, ${input}, ${protocol}`, 'requests/s, us', {
    concurrency,
    ...Object.fromEntries(figures),
    spread: quantile(p99, 0.75) / quantile(p99, 0.25),
    turns,
  })
}

const repository = tinyRepository(input === 'detector' ? undefined : input)
try {
  await using service = await tinyService(repository, {
    models: input === 'detector' ? ['ppe_detect', 'tiny'] : ['tiny'],
    under: pinned(ofServer),
  })
  const addresses = { http: `127.0.0.1:${service.httpPort}`, grpc: await grpcAddress(service) }
  for (const [protocol, address] of Object.entries(addresses)) {
    for (const concurrency of concurrencies) {
      const seen: Record<ClientName, Turn[]> = { gantry: [], analyzer: [] }
      for (let turn = 0; turn < turns; turn++)
        for (const client of turn % 2 === 0 ? clients : [...clients].reverse())
          seen[client].push(await turnOf(client, protocol, address, concurrency))
      tell(protocol, concurrency, seen)
    }
  }
} finally {
  rmSync(repository.dir, { recursive: true, force: true })
  rmSync(dir, { recursive: true, force: true })
}
