/**
 * What the service costs beyond its two workers: CPU seconds per inferred frame of the whole service, over ffmpeg alone plus ONNX
 * Runtime alone on the same cameras and frames, in one run.
 *
 *     npx tsx test/bench/service-overhead.bench.ts [cameras] [fps] [seconds] [rounds]
 *
 * The service and its parts take turns, with the cameras of the service switched off while the parts run: the speed of a virtual
 * machine changes by a sixth within minutes. Each round is held against the parts before and after it. Decoders and bare sessions run side by side, as they do in the service: where two things
 * run at once, each costs more (measured: a run of 12 ms takes 16 beside another).
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cameraSchema } from '../../src/config/camera.js'
import { cameraDetectorOf } from '../support/camera-detector-of.js'
import type { FrameFormat } from '../../src/vision/frame.js'
import { parseDecoderLine } from '../../src/sources/decoder-log.js'
import { inSoftware } from '../../src/sources/decode-ways.js'
import { decoderArguments } from '../../src/sources/ffmpeg-command.js'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { cpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { type ByServicePart, serviceCpuSeconds } from '../support/service-cpu.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report, undisturbed } from './bench.js'

const [cameras = 4, fps = 5, seconds = 20, rounds = 9] = process.argv.slice(2).map(Number)

// Until the code around a frame is compiled, which takes V8 some thousand calls.
const warmUpMs = 90_000
/** After decoders began, until they have told what they open and are at the rate of their cameras. */
const settleMs = 4_000
/** More than caches hold. */
const differentFrames = 40

/** As `/readyz` tells it. */
type Detector = Readonly<{ input: FrameFormat['input']; instances: number }>
/** CPU milliseconds per frame, by who used them. */
type Service = ByServicePart & { frames: number }
type Parts = Record<'ffmpeg' | 'runtime', number>

/** The service, measured while its cameras are switched on. */
class WholeService {
  private constructor(
    readonly running: TestService,
    readonly detector: Detector,
  ) {}

  static async start(rtsp: LoopingRtspServer): Promise<WholeService> {
    const running = await TestService.start({
      pipeline: { modelServer: {}, cameras: cameraSettings(rtsp, cameras, fps) },
    })
    await until('the model server', async () => (await fetch(`${running.url}/v2/health/ready`)).ok, 60_000)
    const { engines } = await running.json<{ engines: { detector: Detector | null }[] }>('/readyz')
    const detector = engines[0]?.detector
    if (!detector) throw new Error('no detector')
    return new WholeService(running, detector)
  }

  async switchCameras(enabled: boolean): Promise<void> {
    for (let index = 1; index <= cameras; index += 1) {
      await this.running.send('PATCH', `/api/v1/cameras/cam-${index}`, { enabled })
      await this.running.cameraIs(`cam-${index}`, enabled ? 'live' : 'disabled')
    }
    await pause(settleMs)
  }

  async round(): Promise<Service> {
    await this.switchCameras(true)
    const inferred = () =>
      this.running.metric(/gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/)
    const costs = () => serviceCpuSeconds(this.running.pid)
    const before = { frames: await inferred(), costs: costs() }
    await pause(seconds * 1_000)
    const after = costs()
    const frames = (await inferred()) - before.frames
    await this.switchCameras(false)
    const perFrame = (part: keyof typeof after) => ((after[part] - before.costs[part]) * 1e3) / frames
    return {
      decoders: perFrame('decoders'),
      engine: perFrame('engine'),
      control: perFrame('control'),
      stream: perFrame('stream'),
      modelServer: perFrame('modelServer'),
      frames,
    }
  }
}

/** The decoders of the service with nobody behind them. */
function startDecoders(rtsp: LoopingRtspServer, input: FrameFormat['input'], stdout: 'ignore' | 'pipe') {
  return Array.from({ length: cameras }, (_, index) => {
    const camera = cameraSchema.parse({ id: 'bench', url: rtsp.url(`/cam${index + 1}`), sampleFps: fps })
    const args = decoderArguments(
      camera,
      { kind: 'rtsp', url: camera.url, transport: 'tcp' },
      { input, align: 'center' },
      inSoftware,
    )
    return spawn('ffmpeg', args, { stdio: ['ignore', stdout, 'pipe'] })
  })
}

/** Frames as the service's decoders make them, packed one behind the other. */
async function framesOf(rtsp: LoopingRtspServer, input: FrameFormat['input']): Promise<Buffer> {
  const decoders = startDecoders(rtsp, input, 'pipe')
  const frameBytes = input.widthPx * input.heightPx * 3
  const bytes = frameBytes * Math.ceil(differentFrames / cameras)
  try {
    return Buffer.concat(await Promise.all(decoders.map((each) => firstBytes(each, bytes))))
  } finally {
    for (const each of decoders) each.kill('SIGKILL')
  }
}

async function firstBytes(child: ChildProcess, bytes: number): Promise<Buffer> {
  child.stderr?.resume()
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= bytes) return Buffer.concat(chunks).subarray(0, bytes)
  }
  throw new Error('a decoder ended')
}

/** Bare sessions: as many workers as instances, at the rate of the cameras. */
class BareSessions {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor({ input, instances }: Detector, frames: string) {
    const script = fileURLToPath(new URL('./bare-sessions.mjs', import.meta.url))
    const repository = fileURLToPath(new URL('../../models', import.meta.url))
    const model = cameraDetectorOf(repository, 'ppe').path
    const sizes = [instances, input.widthPx, input.heightPx, cameras * fps].map(String)
    this.#child = spawn(process.execPath, [script, model, ...sizes, frames], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]()
  }

  async answer(): Promise<string> {
    const line = await this.#lines.next()
    if (line.done) throw new Error('the bare sessions ended')
    return line.value
  }

  /** @returns CPU milliseconds per frame. */
  async round(): Promise<number> {
    this.#child.stdin?.write(`${seconds}\n`)
    return (JSON.parse(await this.answer()) as { cpuSecondsPerFrame: number }).cpuSecondsPerFrame * 1e3
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.stdin?.end()
    await ended
  }
}

/** The decoders, and beside them sessions that run as many frames. */
async function partsRound(
  rtsp: LoopingRtspServer,
  sessions: BareSessions,
  input: FrameFormat['input'],
): Promise<Parts> {
  const decoders = startDecoders(rtsp, input, 'ignore')
  let pictures = 0
  for (const { stderr } of decoders)
    createInterface({ input: stderr! }).on('line', (line) => {
      if (parseDecoderLine(line).kind === 'picture') pictures += 1
    })
  try {
    await until('pictures of every decoder', () => pictures >= 2 * cameras)
    await pause(settleMs)
    const used = () => decoders.reduce((sum, { pid }) => sum + cpuSeconds(pid ?? 0), 0)
    const before = { cpu: used(), pictures }
    const runtime = await sessions.round()
    return { ffmpeg: ((used() - before.cpu) * 1e3) / (pictures - before.pictures), runtime }
  } finally {
    for (const child of decoders) child.kill('SIGKILL')
  }
}

const median = (values: readonly number[]) => quantile([...values], 0.5)
/** What the parts cost while the service ran, by what they cost before and after. */
const between = (before: Parts, after: Parts) =>
  (before.ffmpeg + before.runtime + after.ffmpeg + after.runtime) / 2
const total = ({ decoders, engine, control, stream, modelServer }: Service) =>
  decoders + engine + control + stream + modelServer

const rtsp = await rtspCameras(cameras)
const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'))
try {
  const whole = await WholeService.start(rtsp)
  await using _running = whole.running
  await pause(warmUpMs)
  await whole.switchCameras(false)
  const { input } = whole.detector
  const frames = join(folder, 'frames.rgb')
  await writeFile(frames, await framesOf(rtsp, input))
  const sessions = new BareSessions(whole.detector, frames)
  await sessions.answer()
  const services: Service[] = []
  const parts: Parts[] = [await partsRound(rtsp, sessions, input)]
  while (services.length < rounds) {
    const round = await undisturbed(async () => ({
      service: await whole.round(),
      parts: await partsRound(rtsp, sessions, input),
    }))
    services.push(round.service)
    parts.push(round.parts)
  }
  await sessions.stop()
  const ratios = services.map((service, index) => total(service) / between(parts[index]!, parts[index + 1]!))
  const ofService = (part: keyof Service) => median(services.map((service) => service[part]))
  const ofParts = (part: keyof Parts) => median(parts.map((each) => each[part]))
  report('service-overhead', 'ratio', {
    ratio: median(ratios),
    rounds: ratios.map((ratio) => ratio.toFixed(3)).join(' '),
    decodersCpuMs: ofService('decoders'),
    engineCpuMs: ofService('engine'),
    controlCpuMs: ofService('control'),
    streamCpuMs: ofService('stream'),
    modelServerCpuMs: ofService('modelServer'),
    ffmpegAloneCpuMs: ofParts('ffmpeg'),
    runtimeAloneCpuMs: ofParts('runtime'),
    cameras,
    fps,
    n: services.reduce((sum, { frames }) => sum + frames, 0),
  })
} finally {
  await rtsp.stop()
  await rm(folder, { recursive: true, force: true })
}
