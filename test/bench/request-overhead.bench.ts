/**
 * What a request with a tensor of 1 KB, or of the 184 KB of a small picture, costs beyond the run of its model: time at the client less time
 * in the model, one client in a process of its own, in alternating rounds with servers on the same libraries that do nothing. The processor
 * time is that of the service. `tail` is the p99 of the time at the client over its p50.
 *
 *     npx tsx test/bench/request-overhead.bench.ts [rounds] [kilobyte|picture]
 */
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cpuSeconds } from '../support/cpu.js'
import { perfAnalyzer } from '../support/perf-analyzer.js'
import type { TestService } from '../support/service.js'
import { tritonClients } from '../support/triton-clients.js'
import { quantile, report } from './bench.js'
import { grpcAddress, tinyRepository, tinyService } from './tiny-model.js'

const rounds = Number(process.argv[2] ?? 5)
const input = process.argv[3] === 'picture' ? 'picture' : 'kilobyte'
const seconds = 3
const protocols = ['http', 'grpc'] as const
type Protocol = (typeof protocols)[number]

type Latencies = Readonly<{ p50: number; p95: number; p99: number; n: number }>
type Round = Latencies & Readonly<{ computeUs: number; controlUs: number; modelServerUs: number }>

const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

async function ask(protocol: Protocol, address: string): Promise<Latencies> {
  const args = [beside('./infer-clients.mjs'), protocol, address, String(seconds), input]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as Latencies
}

type Counters = Readonly<{
  count: number
  computeNs: number
  controlSeconds: number
  modelServerSeconds: number
}>

async function counters(service: TestService): Promise<Counters> {
  const { model_stats } = await service.json<{
    model_stats: [{ inference_stats: { compute_infer: { count: number; ns: number } } }]
  }>('/v2/models/tiny/stats')
  const { count, ns } = model_stats[0].inference_stats.compute_infer
  const { modelServer } = await service.ready()
  const [controlSeconds, modelServerSeconds] = [cpuSeconds(service.pid), cpuSeconds(modelServer?.pid ?? 0)]
  return { count, computeNs: ns, controlSeconds, modelServerSeconds }
}

async function measure(service: TestService, protocol: Protocol, address: string): Promise<Round> {
  const before = await counters(service)
  const latencies = await ask(protocol, address)
  const after = await counters(service)
  const requests = after.count - before.count
  return {
    ...latencies,
    computeUs: (after.computeNs - before.computeNs) / requests / 1e3,
    controlUs: ((after.controlSeconds - before.controlSeconds) / requests) * 1e6,
    modelServerUs: ((after.modelServerSeconds - before.modelServerSeconds) / requests) * 1e6,
  }
}

/** The best round tells what the code costs; the others what the machine did meanwhile. */
function tell(protocol: Protocol, all: readonly Round[], bare: readonly Latencies[]): void {
  const overheads = all.map(({ p50, computeUs }) => p50 - computeUs)
  const bareUs = bare.map(({ p50 }) => p50)
  const tailOf = (taken: readonly Latencies[]) =>
    quantile(
      taken.map(({ p50, p99 }) => p99 / p50),
      0.5,
    )
  report(`overhead of a request of a ${input}, ${protocol}`, 'us', {
    p50: quantile(overheads, 0.5),
    p50Best: Math.min(...overheads),
    p99: quantile(
      all.map(({ p99, computeUs }) => p99 - computeUs),
      0.5,
    ),
    compute: quantile(
      all.map(({ computeUs }) => computeUs),
      0.5,
    ),
    cpuOfControl: Math.min(...all.map(({ controlUs }) => controlUs)),
    cpuOfModelServer: Math.min(...all.map(({ modelServerUs }) => modelServerUs)),
    bareServerP50: quantile(bareUs, 0.5),
    bareServerP50Best: Math.min(...bareUs),
    tail: tailOf(all),
    bareServerTail: tailOf(bare),
    rounds,
    n: all.reduce((sum, { n }) => sum + n, 0),
  })
}

async function tellOfAnalyzer(protocol: Protocol, address: string): Promise<void> {
  const args = ['-m', 'tiny', '-i', protocol, '-u', address, '--concurrency-range', '1']
  const { rows } = await perfAnalyzer([...args, '--measurement-mode', 'time_windows', '-p', '2000'])
  const [row = {}] = rows
  const [p50, p99] = [Number(row['p50 latency']), Number(row['p99 latency'])]
  report(`a request of a ${input} by perf_analyzer, one client, ${protocol}`, 'us', {
    p50,
    p99,
    tail: p99 / p50,
    compute: Number(row['Server Compute Infer']),
    perSecond: Number(row['Inferences/Second']),
  })
}

const repository = tinyRepository(input)
const bare = fork(beside('./bare-servers.mjs'))
const [bareAddresses] = (await once(bare, 'message')) as [Record<Protocol, string>]
try {
  await using service = await tinyService(repository)
  const addresses = { http: `127.0.0.1:${service.httpPort}`, grpc: await grpcAddress(service) }
  for (const protocol of protocols) {
    const seen: Round[] = []
    const without: Latencies[] = []
    for (let round = 0; round < rounds; round++) {
      without.push(await ask(protocol, bareAddresses[protocol]))
      seen.push(await measure(service, protocol, addresses[protocol]))
    }
    tell(protocol, seen, without)
    if (tritonClients !== undefined) await tellOfAnalyzer(protocol, addresses[protocol])
  }
} finally {
  bare.disconnect()
  rmSync(repository.dir, { recursive: true, force: true })
}
