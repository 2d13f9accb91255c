/**
 * What TLS costs a request, by who ends it: nobody (`plain`, the socket that control gave away), the process that answers (`itself`), the
 * TLS door in front of it (`door`), and control, which relays to it (`relay`). One client in a process of its own, in alternating rounds;
 * the server reads a body and answers 1 KB. Processor time is that of all processes on the server's side, per request; `inControl` is the
 * part of it in the process that cameras need.
 *
 *     npx tsx test/bench/tls-overhead.bench.ts [rounds]
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Registry } from 'prom-client'
import { pipelineSchema } from '../../src/config/pipeline.js'
import { createTlsMetrics } from '../../src/metrics/tls-metrics.js'
import { TlsDoorProcess } from '../../src/processes/tls-door/tls-door-process.js'
import { cpuSeconds } from '../support/cpu.js'
import { silentLog } from '../support/silent-log.js'
import { TestAuthority } from '../support/test-authority.js'
import { quantile, report } from './bench.js'

const rounds = Number(process.argv[2] ?? 5)
const seconds = 2
const ways = ['plain', 'itself', 'door', 'relay'] as const
type Way = (typeof ways)[number]
type Seen = Readonly<{ p50: number; p99: number; n: number }>

const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const authority = new TestAuthority()
const { cert, key } = authority.issue('bench')
const material = { cert: authority.text(cert), key: authority.text(key) }
const config = pipelineSchema.parse({ apiVersion: 'gantry/v1', server: { httpPort: 0, metricsPort: 0 } })
const door = new TlsDoorProcess(config, () => material, createTlsMetrics(new Registry()), silentLog())
const relaySocket = join(authority.folder, 'relay.sock')
const sockets = [cert, key, door.paths.http, relaySocket]

async function started(...more: string[]): Promise<readonly [ChildProcess, Record<string, number>]> {
  const child = fork(beside('./tls-servers.mjs'), [...sockets, ...more])
  const [ports] = (await once(child, 'message')) as [Record<string, number>]
  return [child, ports]
}

const [server, own] = await started()
const [relaying, relayed] = await started('relay')
const { httpPort } = await door.open()
const portOf: Record<Way, number> = {
  plain: own.plain ?? 0,
  itself: own.itself ?? 0,
  door: httpPort,
  relay: relayed.relayed ?? 0,
}

function cpuOf(): Readonly<Record<'server' | 'door' | 'relay', number>> {
  return {
    server: cpuSeconds(server.pid ?? 0),
    door: cpuSeconds(door.health.pid ?? 0),
    relay: cpuSeconds(relaying.pid ?? 0),
  }
}

async function measured(way: Way, bytes: number, mode: 'kept' | 'new') {
  const before = cpuOf()
  const args = [
    String(portOf[way]),
    way === 'plain' ? 'plain' : authority.ca,
    String(bytes),
    mode,
    String(seconds),
  ]
  const { stdout } = await promisify(execFile)(process.execPath, [beside('./tls-client.mjs'), ...args])
  const seen = JSON.parse(stdout) as Seen
  const after = cpuOf()
  // A third more for warming up.
  const requests = (seen.n * 4) / 3
  const us = (part: 'server' | 'door' | 'relay') => ((after[part] - before[part]) / requests) * 1e6
  return { ...seen, cpu: us('server') + us('door') + us('relay'), inControl: us('relay') }
}

try {
  for (const [name, bytes, mode] of [
    ['a request of 1 KB', 1_024, 'kept'],
    ['a request of 184 KB', 184_320, 'kept'],
    ['a request of 10 MB', 10 * 1024 ** 2, 'kept'],
    ['a connection and a request of 1 KB', 1_024, 'new'],
  ] as const) {
    const all = new Map<Way, Awaited<ReturnType<typeof measured>>[]>()
    for (let round = 0; round < rounds; round++)
      for (const way of ways) all.set(way, [...(all.get(way) ?? []), await measured(way, bytes, mode)])
    for (const [way, seen] of all) {
      const median = (of: (one: (typeof seen)[number]) => number) => quantile(seen.map(of), 0.5)
      report(`${name}, ${way}`, 'us', {
        p50: median(({ p50 }) => p50),
        p50Best: Math.min(...seen.map(({ p50 }) => p50)),
        p99: median(({ p99 }) => p99),
        cpu: median(({ cpu }) => cpu),
        inControl: median(({ inControl }) => inControl),
        rounds,
        n: seen.reduce((sum, { n }) => sum + n, 0),
      })
    }
  }
} finally {
  server.disconnect()
  relaying.disconnect()
  await door.stop()
  rmSync(authority.folder, { recursive: true, force: true })
}
