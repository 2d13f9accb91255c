/**
 * What a camera costs beside its frames: CPU per analysed frame of our own processes, without the decoders, with one camera and with
 * many at the same total rate, and the memory each camera adds to ours and to its decoder.
 *
 *     npx tsx test/bench/scale.bench.ts [cameras] [total fps] [seconds]
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { cpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { ownBytes } from '../support/memory.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { report } from './bench.js'

const [cameras = 16, totalFps = 16, seconds = 20] = process.argv.slice(2).map(Number)

// Until the code around a frame is compiled, which takes V8 some hundred calls.
const warmUpMs = 45_000

type Costs = Readonly<{ cpuMsPerFrame: number; oursBytes: number; decoderBytes: number; frames: number }>

async function costsOf(count: number, rtsp: LoopingRtspServer): Promise<Costs> {
  await using service = await TestService.start({
    pipeline: {
      cameras: cameraSettings(rtsp, count, totalFps / count),
    },
  })
  for (let index = 1; index <= count; index += 1) await service.cameraIs(`cam-${index}`, 'live', 60_000)
  await pause(warmUpMs)
  const below = descendants(service.pid)
  const isDecoder = ({ command }: (typeof below)[number]) => command.includes('ffmpeg')
  const decoders = below.filter(isDecoder).map(({ pid }) => pid)
  const ours = [service.pid, ...below.filter((entry) => !isDecoder(entry)).map(({ pid }) => pid)]
  const used = () => ours.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
  const inferred = () => service.metric(/gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/)
  const frames0 = await inferred()
  const cpu0 = used()
  await pause(seconds * 1_000)
  const frames = (await inferred()) - frames0
  return {
    cpuMsPerFrame: ((used() - cpu0) / frames) * 1e3,
    oursBytes: ours.reduce((sum, pid) => sum + ownBytes(pid), 0),
    decoderBytes: decoders.reduce((sum, pid) => sum + ownBytes(pid), 0) / Math.max(1, decoders.length),
    frames,
  }
}

function mean(all: readonly Costs[], figure: keyof Costs): number {
  return all.reduce((sum, costs) => sum + costs[figure], 0) / all.length
}

const rtsp = await rtspCameras(cameras)
try {
  // In this order a drift of the machine weighs the same on both.
  const first = await costsOf(1, rtsp)
  const many = [await costsOf(cameras, rtsp), await costsOf(cameras, rtsp)]
  const one = [first, await costsOf(1, rtsp)]
  const cpuMsPerFrameOne = mean(one, 'cpuMsPerFrame')
  const cpuMsPerFrameMany = mean(many, 'cpuMsPerFrame')
  report('scale', 'ratio', {
    cpuPerFrame: cpuMsPerFrameMany / cpuMsPerFrameOne,
    cpuMsPerFrameOne,
    cpuMsPerFrameMany,
    memoryPerCameraMiB: (mean(many, 'oursBytes') - mean(one, 'oursBytes')) / (cameras - 1) / 2 ** 20,
    decoderMiB: mean(many, 'decoderBytes') / 2 ** 20,
    cameras,
    totalFps,
    n: many.reduce((sum, { frames }) => sum + frames, 0),
  })
} finally {
  await rtsp.stop()
}
