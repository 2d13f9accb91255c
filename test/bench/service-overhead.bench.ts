/**
 * What the service costs beyond its two workers: CPU seconds per inferred frame of the whole service, over ffmpeg alone plus ONNX
 * Runtime alone on the same cameras, in one run.
 *
 *     npx tsx test/bench/service-overhead.bench.ts [cameras] [fps] [seconds]
 *
 * The alternating order (parts, service, parts) keeps a drift of the machine out of the ratio.
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
import { cpuSeconds, treeCpuSeconds } from '../support/cpu.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { report } from './bench.js'

const [cameras = 4, fps = 5, seconds = 20] = process.argv.slice(2).map(Number)

type Part = Readonly<{ cpuPerFrame: number; frames: number }>
/** As `/readyz` tells it. */
type Detector = Readonly<{ input: FrameFormat['input']; instances: number }>

async function service(rtsp: LoopingRtspServer): Promise<Part & { detector: Detector }> {
  await using running = await TestService.start({
    pipeline: {
      modelServer: {},
      cameras: Array.from({ length: cameras }, (_, index) => ({
        id: `cam-${index + 1}`,
        url: rtsp.url(`/cam${index + 1}`),
        sampleFps: fps,
      })),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await running.cameraIs(`cam-${index}`, 'live')
  await until('the model server', async () => (await fetch(`${running.url}/v2/health/ready`)).ok, 60_000)
  const { engines } = await running.json<{ engines: { detector: Detector | null }[] }>('/readyz')
  const detector = engines[0]?.detector
  if (!detector) throw new Error('no detector')
  // Start-up work, such as compiling what has become hot, ends within half a minute.
  await pause(30_000)
  const inferred = () => running.metric(/gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/)
  const frames0 = await inferred()
  const cpu0 = treeCpuSeconds(running.pid)
  await pause(seconds * 1_000)
  const frames = (await inferred()) - frames0
  return { cpuPerFrame: (treeCpuSeconds(running.pid) - cpu0) / frames, frames, detector }
}

/** The same decoders with nobody but /dev/null behind them. */
async function ffmpegAlone(rtsp: LoopingRtspServer, detector: Detector): Promise<number> {
  const format: FrameFormat = { input: detector.input, align: 'center' }
  const children = Array.from({ length: cameras }, (_, index) => {
    const camera = cameraSchema.parse({ id: 'bench', url: rtsp.url(`/cam${index + 1}`), sampleFps: fps })
    return spawn('ffmpeg', decoderArguments(camera, { kind: 'rtsp', url: camera.url }, format, 'none'), {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
  })
  try {
    await pause(3_000)
    const used = () => children.reduce((sum, { pid }) => sum + cpuSeconds(pid ?? 0), 0)
    const cpu0 = used()
    await pause(seconds * 1_000)
    return (used() - cpu0) / (cameras * fps * seconds)
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

/** Bare sessions: as many workers as instances, at the rate of the cameras, so that their caches are as cold as the service's. */
async function onnxRuntimeAlone({ input, instances }: Detector): Promise<number> {
  const script = fileURLToPath(new URL('./bare-sessions.mjs', import.meta.url))
  const repository = fileURLToPath(new URL('../../models', import.meta.url))
  const model = findCameraModel(repository, 'ppe').detector.path
  const args = [script, model, instances, seconds / 2, input.widthPx, input.heightPx, cameras * fps].map(
    String,
  )
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await once(child, 'exit')
  return (JSON.parse(text) as { cpuSecondsPerFrame: number }).cpuSecondsPerFrame
}

const rtsp = await rtspCameras(cameras)
try {
  const probe = await service(rtsp)
  const parts = async () => ({
    ffmpeg: await ffmpegAlone(rtsp, probe.detector),
    runtime: await onnxRuntimeAlone(probe.detector),
  })
  const before = await parts()
  const whole = await service(rtsp)
  const after = await parts()
  const ffmpeg = (before.ffmpeg + after.ffmpeg) / 2
  const runtime = (before.runtime + after.runtime) / 2
  report('service-overhead', 'ratio', {
    ratio: whole.cpuPerFrame / (ffmpeg + runtime),
    serviceCpuMsPerFrame: whole.cpuPerFrame * 1e3,
    ffmpegCpuMsPerFrame: ffmpeg * 1e3,
    runtimeCpuMsPerFrame: runtime * 1e3,
    cameras,
    fps,
    n: whole.frames,
  })
} finally {
  await rtsp.stop()
}
