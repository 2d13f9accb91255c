/**
 * A tiny model over gRPC, asked by perf_analyzer, beside the same ONNX file in nvidia-pytriton, which carries Triton's own core: requests
 * per second and latency at several concurrencies, in alternating rounds of one run. Batching is off on both sides.
 *
 *     npx tsx test/bench/model-server-peer.bench.ts [rounds] [python with pytriton and onnxruntime]
 *
 * The Python comes from `/usr/bin/python3 -m venv DIR && DIR/bin/pip install nvidia-pytriton==0.7.0 onnxruntime`, with the system's Python,
 * 3.11 or older: Triton loads its libpython, and the library of another patch release does not fit.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../support/free-port.js'
import { perfAnalyzer } from '../support/perf-analyzer.js'
import { quantile, report } from './bench.js'
import { grpcAddress, tinyRepository, tinyService } from './tiny-model.js'

const rounds = Number(process.argv[2] ?? 3)
const python = process.argv[3] ?? join(homedir(), '.cache/gantry-test/pytriton/bin/python')
const concurrencies = [1, 2, 4, 8]
/** perf_analyzer takes the mean of three. */
const windowMs = 1_000

type Figures = Readonly<{ perSecond: number; p50Us: number; p99Us: number }>

async function pytriton(onnx: string): Promise<Readonly<{ child: ChildProcess; address: string }>> {
  const ports = [await freePort(), await freePort(), await freePort()]
  const script = fileURLToPath(new URL('./pytriton-server.py', import.meta.url))
  const child = spawn(python, [script, onnx, ...ports.map(String)], { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => text.includes('ready') && resolve())
    child.once('exit', () => reject(new Error(`pytriton ended:\n${said}`)))
  })
  await ready
  return { child, address: `127.0.0.1:${ports[0]}` }
}

async function measure(address: string, concurrency: number): Promise<Figures> {
  const window = ['--measurement-mode', 'time_windows', '-p', String(windowMs)]
  const where = ['-m', 'tiny', '-i', 'grpc', '-u', address, '--concurrency-range', String(concurrency)]
  const { rows } = await perfAnalyzer([...where, ...window])
  const row = rows[0] ?? {}
  return {
    perSecond: Number(row['Inferences/Second']),
    p50Us: Number(row['p50 latency']),
    p99Us: Number(row['p99 latency']),
  }
}

function median(all: readonly Figures[], name: keyof Figures): number {
  return quantile(
    all.map((figures) => figures[name]),
    0.5,
  )
}

const repository = tinyRepository()
const peer = await pytriton(repository.onnx)
try {
  await using service = await tinyService(repository)
  const addresses = { gantry: await grpcAddress(service), pytriton: peer.address }
  for (const address of Object.values(addresses)) await measure(address, 4)
  for (const concurrency of concurrencies) {
    const seen: Record<keyof typeof addresses, Figures[]> = { gantry: [], pytriton: [] }
    for (let round = 0; round < rounds; round++)
      for (const name of ['gantry', 'pytriton'] as const)
        seen[name].push(await measure(addresses[name], concurrency))
    const of = (name: keyof Figures) => ({
      [`gantry_${name}`]: median(seen.gantry, name),
      [`pytriton_${name}`]: median(seen.pytriton, name),
    })
    report('tiny model over gRPC beside nvidia-pytriton', 'requests/s, us', {
      concurrency,
      throughputRatio: median(seen.gantry, 'perSecond') / median(seen.pytriton, 'perSecond'),
      p99Ratio: median(seen.gantry, 'p99Us') / median(seen.pytriton, 'p99Us'),
      ...of('perSecond'),
      ...of('p50Us'),
      ...of('p99Us'),
      rounds,
    })
  }
} finally {
  peer.child.stdin?.end()
  if (peer.child.exitCode === null) await once(peer.child, 'exit')
  rmSync(repository.dir, { recursive: true, force: true })
}
