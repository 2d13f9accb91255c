/**
 * Requests with 184,320 numbers in their JSON, which are answered by 13,860, beside the same ONNX file in a tuned MLServer
 * (peer-mlserver/onnx_runtime.py; no worker processes, which cost it a half): requests per second and latency of 4 clients, in turn in
 * one run, and what a request costs either server of processor time.
 *
 *     npm run build:server && npx tsx test/bench/json-peer.bench.ts [rounds] [seconds] [picture|floats]
 *
 * Where there is no Python or no registry, it says so and ends.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { treeCpuSeconds } from '../support/cpu.js'
import { freePort } from '../support/free-port.js'
import { until } from '../support/until.js'
import { medianOf, quantile, report } from './bench.js'
import { peerPython } from './peer-python.js'
import { tinyRepository, tinyService } from './tiny-model.js'

const rounds = Number(process.argv[2] ?? 9)
const seconds = process.argv[3] ?? '5'
const input = process.argv[4] === 'floats' ? 'floats' : 'picture'
const clients = 4

type Round = Readonly<{ perSecond: number; p50: number; p99: number; cpuMs: number }>

async function mlserver(python: string, onnx: string, folder: string) {
  const [http_port, grpc_port, metrics_port] = [await freePort(), await freePort(), await freePort()]
  const ports = { host: '127.0.0.1', http_port, grpc_port, metrics_port }
  const settings = { ...ports, parallel_workers: 0, debug: false, use_structured_logging: false }
  const model = { name: 'tiny', implementation: 'onnx_runtime.OnnxRuntime', parameters: { uri: onnx } }
  mkdirSync(join(folder, 'tiny'), { recursive: true })
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings))
  writeFileSync(join(folder, 'tiny/model-settings.json'), JSON.stringify(model))
  const child = spawn(join(python, '../mlserver'), ['start', folder], {
    env: { ...process.env, PYTHONPATH: fileURLToPath(new URL('./peer-mlserver', import.meta.url)) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const address = `127.0.0.1:${http_port}`
  const isReady = () =>
    fetch(`http://${address}/v2/models/tiny/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(
    'MLServer',
    () => {
      if (child.exitCode !== null) throw new Error(`MLServer ended:\n${said}`)
      return isReady()
    },
    60_000,
  )
  return { child, address }
}

/** @param pid - of the server, whose processes are all counted. */
async function ask({ address, pid }: Readonly<{ address: string; pid: number }>): Promise<Round> {
  const script = fileURLToPath(new URL('./infer-clients.mjs', import.meta.url))
  const args = [script, 'json', address, seconds, input, String(clients)]
  const before = treeCpuSeconds(pid)
  const { stdout } = await promisify(execFile)(process.execPath, args)
  // Its warm-up, a third as long, is in it as well.
  const cpuSeconds = (treeCpuSeconds(pid) - before) * 0.75
  const { n, p50, p99 } = JSON.parse(stdout) as { n: number; p50: number; p99: number }
  return { perSecond: n / Number(seconds), p50: p50 / 1e3, p99: p99 / 1e3, cpuMs: (cpuSeconds / n) * 1e3 }
}

const python = await peerPython('peer-mlserver')
if (python === undefined) process.exit(0)
const repository = tinyRepository(input, 13_860)
const folder = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
const peer = await mlserver(python, repository.onnx, folder)
try {
  await using service = await tinyService(repository)
  const addresses = {
    gantry: { address: `127.0.0.1:${service.httpPort}`, pid: service.pid },
    mlserver: { address: peer.address, pid: peer.child.pid! },
  }
  const names = ['gantry', 'mlserver'] as const
  const seen: Record<(typeof names)[number], Round[]> = { gantry: [], mlserver: [] }
  for (const name of names) await ask(addresses[name])
  for (let round = 0; round < rounds; round += 1)
    for (const name of round % 2 === 0 ? names : names.toReversed())
      seen[name].push(await ask(addresses[name]))
  const ratio = (of: keyof Round) =>
    medianOf(seen.gantry.map((round, index) => round[of] / seen.mlserver[index]![of]))
  const median = (name: (typeof names)[number], of: keyof Round) =>
    quantile(
      seen[name].map((round) => round[of]),
      0.5,
    )
  report(`JSON of 184,320 numbers (${input}) beside a tuned MLServer`, 'requests/s, ms', {
    throughputRatio: ratio('perSecond').median,
    throughputInterval: ratio('perSecond').interval,
    p99Ratio: ratio('p99').median,
    cpuRatio: ratio('cpuMs').median,
    cpuInterval: ratio('cpuMs').interval,
    ...Object.fromEntries(
      names.flatMap((name) =>
        (['perSecond', 'p50', 'p99', 'cpuMs'] as const).map((of) => [`${name}_${of}`, median(name, of)]),
      ),
    ),
    clients,
    rounds,
    seconds,
  })
} finally {
  peer.child.kill('SIGTERM')
  if (peer.child.exitCode === null) await once(peer.child, 'exit')
  for (const dir of [repository.dir, folder]) rmSync(dir, { recursive: true, force: true })
}
