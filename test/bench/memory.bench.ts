/**
 * What the service takes of memory: each of its processes with so many cameras, and what a further camera adds. Shared pages are divided
 * among those that share them (PSS).
 *
 *     npx tsx test/bench/memory.bench.ts [cameras] [fps] [seconds until it is looked at]
 *
 * The shipped detector and repository, clips of 1280x720, models of API clients as they are without `models.control`: nobody asks.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { report } from './bench.js'

const [cameras = 6, fps = 5, seconds = 60] = process.argv.slice(2).map(Number)

type Kind = 'control' | 'engine' | 'stream' | 'modelServer' | 'decoders'
type Memory = Readonly<Record<Kind | 'all', number>>

function kindOf(command: string): Kind {
  if (command.includes('ffmpeg')) return 'decoders'
  if (command.includes('engine/main')) return 'engine'
  if (command.includes('stream/main')) return 'stream'
  return command.includes('model-server/main') ? 'modelServer' : 'control'
}

function pssMb(pid: number): number {
  const kib = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
  return (Number(kib ?? 0) * 1024) / 1e6
}

async function memoryOf(count: number, rtsp: LoopingRtspServer): Promise<Memory> {
  await using service = await TestService.start({
    pipeline: { modelServer: {}, cameras: cameraSettings(rtsp, count, fps) },
  })
  for (let index = 1; index <= count; index += 1) await service.cameraIs(`cam-${index}`, 'live', 60_000)
  await pause(seconds * 1_000)
  const memory: Record<Kind | 'all', number> = {
    all: 0,
    control: 0,
    engine: 0,
    stream: 0,
    modelServer: 0,
    decoders: 0,
  }
  const processes = [{ pid: service.pid, command: '' }, ...descendants(service.pid)]
  for (const { pid, command } of processes) {
    const mb = pssMb(pid)
    memory[kindOf(command)] += mb
    memory.all += mb
  }
  return memory
}

const rtsp = await rtspCameras(cameras)
try {
  const one = await memoryOf(1, rtsp)
  report('memory, one camera', 'MB', one)
  const many = await memoryOf(cameras, rtsp)
  report(`memory, ${cameras} cameras`, 'MB', many)
  report('memory of a further camera', 'MB', {
    all: (many.all - one.all) / (cameras - 1),
    decoder: (many.decoders - one.decoders) / (cameras - 1),
  })
} finally {
  await rtsp.stop()
}
