/**
 * What the way through a gate of ours costs. `npx tsx test/bench/gate-cost.bench.ts [clip] [server script in Python]`
 *
 * The same decoders, with the same arguments, open the same cameras by themselves and through their gates, in turn, each for some
 * seconds; the server is a process of its own. CPU is that of the decoders and of this process, which reads their frames as an engine
 * does and runs the gates. `gate_cost`: the median of the ratios of neighbouring rounds, with the interval that holds the true median
 * with 95 %. `gate_reader`: the same of this process alone. `gate_memory`: resident bytes of this process and its decoders, likewise.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cameraSchema } from '../../src/config/camera.js'
import { FramePool } from '../../src/vision/frame-pool.js'
import { delay } from '../../src/lifecycle/delay.js'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { openByteChannel } from '../../src/sources/byte-channel.js'
import { inSoftware } from '../../src/sources/decode-ways.js'
import { decoderArguments, type DecoderInput } from '../../src/sources/ffmpeg-command.js'
import { FrameAssembler } from '../../src/sources/frame-assembler.js'
import { RtspGate } from '../../src/sources/rtsp-gate.js'
import { residentBytes, threadCpuMs } from '../support/cpu.js'
import { freePort } from '../support/free-port.js'
import { quantile, report } from './bench.js'

const format = { input: { widthPx: 640, heightPx: 640 }, align: 'center' } as const
const cameras = 4
const settleMs = 1_500
/** Until the code of a gate has been compiled, as it is in a service that has run for a minute. */
const warmUpMs = 30_000
const roundMs = 5_000
const pairs = Number(process.env['PAIRS'] ?? 20)
const pool = new FramePool(640 * 640 * 3, 8)

type Way = 'alone' | 'gate'
type Round = Readonly<{ cpuMsPerFrame: number; readerMsPerFrame: number; residentBytes: number }>

class Camera {
  frames = 0
  #process: ChildProcess | undefined
  #gate: RtspGate | undefined

  constructor(
    readonly way: Way,
    readonly url: string,
  ) {}

  async start(): Promise<void> {
    const camera = cameraSchema.parse({ id: 'bench', url: this.url, sampleFps: 5 })
    const assembler = new FrameAssembler(pool, (rgbHwc) => {
      this.frames += 1
      pool.give(rgbHwc)
    })
    const { writeEnd } = await openByteChannel({
      space: () => assembler.space(),
      filled: (bytes) => {
        assembler.filled(bytes)
        return true
      },
    })
    const args = decoderArguments(camera, await this.#input(), format, inSoftware)
    this.#process = spawn('ffmpeg', args, { stdio: ['ignore', writeEnd, 'pipe'] })
    this.#process.stderr?.resume()
    writeEnd.destroy()
  }

  async #input(): Promise<DecoderInput> {
    if (this.way === 'alone') return { kind: 'rtsp', url: this.url, transport: 'tcp' }
    const addresses = [{ address: '127.0.0.1', family: 4 }] as const
    const policy = new AddressPolicy()
    this.#gate = await RtspGate.open({
      url: this.url,
      addresses,
      nearness: 'loopback',
      policy,
      transport: 'tcp',
      sampleFps: 5,
    })
    return { kind: 'rtsp', url: this.#gate.url, transport: 'tcp' }
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  async stop(): Promise<void> {
    const ended = once(this.#process ?? process, 'exit')
    this.#process?.kill('SIGTERM')
    await ended
    await this.#gate?.close()
  }
}

async function round(way: Way, url: string, forMs = roundMs): Promise<Round> {
  const all = Array.from({ length: cameras }, () => new Camera(way, url))
  await Promise.all(all.map((camera) => camera.start()))
  await delay(settleMs, new AbortController().signal)
  const pids = [process.pid, ...all.map((camera) => camera.pid)]
  const cpu = () => pids.reduce((sum, pid) => sum + threadCpuMs(pid), 0)
  const frames = () => all.reduce((sum, camera) => sum + camera.frames, 0)
  const before = { cpu: cpu(), reader: threadCpuMs(process.pid), frames: frames() }
  await delay(forMs, new AbortController().signal)
  const took = {
    cpu: cpu() - before.cpu,
    reader: threadCpuMs(process.pid) - before.reader,
    frames: frames() - before.frames,
  }
  const resident = pids.reduce((sum, pid) => sum + residentBytes(pid), 0)
  await Promise.all(all.map((camera) => camera.stop()))
  return {
    cpuMsPerFrame: took.cpu / took.frames,
    readerMsPerFrame: took.reader / took.frames,
    residentBytes: resident,
  }
}

/** Bounds of the median of a sample, by the binomial distribution at 95 %. */
function interval(values: readonly number[]): readonly [number, number] {
  const sorted = [...values].sort((a, b) => a - b)
  const aside = Math.max(0, Math.floor(sorted.length / 2 - 0.98 * Math.sqrt(sorted.length)))
  return [sorted[aside] ?? Number.NaN, sorted[sorted.length - 1 - aside] ?? Number.NaN]
}

function tell(
  name: string,
  unit: string,
  rounds: readonly Readonly<Record<Way, Round>>[],
  of: (each: Round) => number,
) {
  const ratios = rounds.map(({ alone, gate }) => of(gate) / of(alone))
  const [low, high] = interval(ratios)
  report(name, unit, {
    alone: quantile(
      rounds.map(({ alone }) => of(alone)),
      0.5,
    ),
    gate: quantile(
      rounds.map(({ gate }) => of(gate)),
      0.5,
    ),
    ratio: quantile(ratios, 0.5),
    low,
    high,
    pairs: rounds.length,
  })
}

const clip = process.argv[2] ?? fileURLToPath(new URL('../../pipelines/demo/clips/dock.mp4', import.meta.url))
const port = await freePort()
const script = process.argv[3]
const server =
  script === undefined
    ? spawn(
        process.execPath,
        [
          fileURLToPath(new URL('../support/rtsp-server-child.mjs', import.meta.url)),
          String(port),
          '/cam',
          clip,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
    : spawn('/usr/bin/python3', [script, String(port), clip], { stdio: ['ignore', 'pipe', 'inherit'] })
await once(server.stdout ?? process, 'data')
const url = `rtsp://127.0.0.1:${port}/cam`
const rounds: Record<Way, Round>[] = []
try {
  await round('gate', url, warmUpMs)
  for (let pair = 0; pair < pairs; pair += 1) {
    const first = pair % 2 === 0 ? 'alone' : 'gate'
    const one = await round(first, url)
    const other = await round(first === 'alone' ? 'gate' : 'alone', url)
    rounds.push(first === 'alone' ? { alone: one, gate: other } : { alone: other, gate: one })
  }
} finally {
  server.kill()
}
tell('gate_cost', 'CPU-ms/frame', rounds, (each) => each.cpuMsPerFrame)
tell('gate_reader', 'CPU-ms/frame', rounds, (each) => each.readerMsPerFrame)
tell('gate_memory', 'MiB', rounds, (each) => each.residentBytes / 2 ** 20)
