/**
 * What the service costs beyond its two workers: CPU seconds per inferred frame of the whole service, over ffmpeg alone plus ONNX
 * Runtime alone on the same cameras, in one run.
 *
 *     npx tsx test/bench/service-overhead.bench.ts [cameras] [fps] [seconds]
 *
 * Decoders and bare sessions run side by side, as they do in the service: where two things run at once, each costs more (measured: a
 * run of 12 ms takes 16 beside another). The alternating order (service, parts, service, parts) keeps a drift of the machine out of
 * the ratio.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cameraSchema } from '../../src/config/camera.js'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import type { FrameFormat } from '../../src/frames/frame.js'
import type { LoopingRtspServer } from '../../src/sources/rtsp-server/looping-rtsp-server.js'
import { decoderArguments } from '../../src/sources/ffmpeg-command.js'
import { cpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { report } from './bench.js'

const [cameras = 4, fps = 5, seconds = 40] = process.argv.slice(2).map(Number)

/** CPU seconds per frame, by who used them. */
type Costs = Readonly<{
  decoders: number
  engine: number
  control: number
  stream: number
  modelServer: number
}>
type Parts = Readonly<{ ffmpeg: number; runtime: number }>
/** As `/readyz` tells it. */
type Detector = Readonly<{ input: FrameFormat['input']; instances: number }>

// Until the code around a frame is compiled, which takes V8 some thousand calls.
const warmUpMs = 90_000

async function service(rtsp: LoopingRtspServer): Promise<Costs & { frames: number; detector: Detector }> {
  await using running = await TestService.start({
    pipeline: {
      modelServer: {},
      cameras: cameraSettings(rtsp, cameras, fps),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await running.cameraIs(`cam-${index}`, 'live')
  await until('the model server', async () => (await fetch(`${running.url}/v2/health/ready`)).ok, 60_000)
  const { engines } = await running.json<{ engines: { detector: Detector | null }[] }>('/readyz')
  const detector = engines[0]?.detector
  if (!detector) throw new Error('no detector')
  await pause(warmUpMs)
  const inferred = () => running.metric(/gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/)
  const below = descendants(running.pid)
  const used = (part: string) =>
    below.filter(({ command }) => command.includes(part)).reduce((sum, { pid }) => sum + cpuSeconds(pid), 0)
  const costs = (): Costs => ({
    decoders: used('ffmpeg'),
    engine: used('engine/main'),
    control: cpuSeconds(running.pid),
    stream: used('stream/main'),
    modelServer: used('model-server/main'),
  })
  const frames0 = await inferred()
  const costs0 = costs()
  await pause(seconds * 1_000)
  const costs1 = costs()
  const frames = (await inferred()) - frames0
  const perFrame = (part: keyof Costs) => (costs1[part] - costs0[part]) / frames
  return {
    decoders: perFrame('decoders'),
    engine: perFrame('engine'),
    control: perFrame('control'),
    stream: perFrame('stream'),
    modelServer: perFrame('modelServer'),
    frames,
    detector,
  }
}

/** The same decoders with nobody but /dev/null behind them, and beside them sessions that run as many frames. */
async function partsAlone(rtsp: LoopingRtspServer, detector: Detector): Promise<Parts> {
  const format: FrameFormat = { input: detector.input, align: 'center' }
  const decoders = Array.from({ length: cameras }, (_, index) => {
    const camera = cameraSchema.parse({ id: 'bench', url: rtsp.url(`/cam${index + 1}`), sampleFps: fps })
    return spawn('ffmpeg', decoderArguments(camera, { kind: 'rtsp', url: camera.url }, format, 'none'), {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
  })
  try {
    await pause(3_000)
    const used = () => decoders.reduce((sum, { pid }) => sum + cpuSeconds(pid ?? 0), 0)
    const cpu0 = used()
    const beganMs = performance.now()
    const runtime = await onnxRuntimeAlone(detector)
    return { ffmpeg: (used() - cpu0) / ((cameras * fps * (performance.now() - beganMs)) / 1e3), runtime }
  } finally {
    for (const child of decoders) child.kill('SIGKILL')
  }
}

/** Bare sessions: as many workers as instances, at the rate of the cameras, so that their caches are as cold as the service's. */
async function onnxRuntimeAlone({ input, instances }: Detector): Promise<number> {
  const script = fileURLToPath(new URL('./bare-sessions.mjs', import.meta.url))
  const repository = fileURLToPath(new URL('../../models', import.meta.url))
  const model = findCameraModel(repository, 'ppe').detector.path
  const args = [script, model, instances, seconds, input.widthPx, input.heightPx, cameras * fps].map(String)
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await once(child, 'exit')
  return (JSON.parse(text) as { cpuSecondsPerFrame: number }).cpuSecondsPerFrame
}

const mean = (...values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const total = ({ decoders, engine, control, stream, modelServer }: Costs) =>
  decoders + engine + control + stream + modelServer

const rtsp = await rtspCameras(cameras)
try {
  const wholes: Awaited<ReturnType<typeof service>>[] = []
  const parts: Parts[] = []
  for (let round = 0; round < 2; round += 1) {
    const whole = await service(rtsp)
    wholes.push(whole)
    parts.push(await partsAlone(rtsp, whole.detector))
  }
  const perFrameMs = (part: keyof Costs) => mean(...wholes.map((whole) => whole[part])) * 1e3
  const ffmpeg = mean(...parts.map((part) => part.ffmpeg))
  const runtime = mean(...parts.map((part) => part.runtime))
  report('service-overhead', 'ratio', {
    ratio: mean(...wholes.map(total)) / (ffmpeg + runtime),
    rounds: wholes
      .map((whole, i) => (total(whole) / (parts[i]!.ffmpeg + parts[i]!.runtime)).toFixed(3))
      .join(' '),
    decodersCpuMs: perFrameMs('decoders'),
    engineCpuMs: perFrameMs('engine'),
    controlCpuMs: perFrameMs('control'),
    streamCpuMs: perFrameMs('stream'),
    modelServerCpuMs: perFrameMs('modelServer'),
    ffmpegAloneCpuMs: ffmpeg * 1e3,
    runtimeAloneCpuMs: runtime * 1e3,
    cameras,
    fps,
    n: wholes.reduce((sum, { frames }) => sum + frames, 0),
  })
} finally {
  await rtsp.stop()
}
