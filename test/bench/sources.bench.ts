/**
 * What it costs to get a frame, and how long it takes. `npx tsx test/bench/sources.bench.ts [clip]`
 *
 * - `source_hand_over`: CPU per frame of 640 x 640 RGB (1.2 MB) from a child into a frame's own buffer: through our channel, and through
 *   the pipe that `spawn` makes with a copy of each chunk.
 * - `source_first_frame`: from the start of a source to its first frame, over RTSP on loopback.
 * - `source_delay`: from the last packet of a picture leaving the server to its frame.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { FramePool } from '../../src/vision/frame-pool.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { openByteChannel } from '../../src/sources/byte-channel.js'
import { FrameAssembler } from '../../src/sources/frame-assembler.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { WatchedSource } from '../support/watched-source.js'
import { quantile, report } from './bench.js'

const format = { input: { widthPx: 640, heightPx: 640 }, align: 'center' } as const
const frameBytes = 640 * 640 * 3
const frames = 300

/** A producer as fast as the pipe allows. */
const producer = ['-c', String(frameBytes * frames), '/dev/zero']

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}

async function throughChannel(): Promise<number> {
  const pool = new FramePool(frameBytes, 2)
  let seen = 0
  const assembler = new FrameAssembler(pool, (rgbHwc) => {
    seen += 1
    pool.give(rgbHwc)
  })
  const { readEnd, writeEnd } = await openByteChannel({
    space: () => assembler.space(),
    filled: (bytes) => {
      assembler.filled(bytes)
      return true
    },
  })
  const closed = new Promise((resolve) => readEnd.once('close', resolve))
  const before = cpuMs()
  spawn('head', producer, { stdio: ['ignore', writeEnd, 'ignore'] })
  writeEnd.destroy()
  await closed
  return (cpuMs() - before) / seen
}

async function throughPipe(): Promise<number> {
  const pool = new FramePool(frameBytes, 2)
  let seen = 0
  const assembler = new FrameAssembler(pool, (rgbHwc) => {
    seen += 1
    pool.give(rgbHwc)
  })
  const before = cpuMs()
  const child = spawn('head', producer, { stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length;) {
      const space = assembler.space()
      const part = chunk.subarray(at, at + space.length)
      space.set(part)
      assembler.filled(part.length)
      at += part.length
    }
  })
  await new Promise((resolve) => child.once('close', resolve))
  return (cpuMs() - before) / seen
}

async function handOver(): Promise<void> {
  await throughChannel()
  await throughPipe()
  const figures = { channel: [] as number[], pipe: [] as number[] }
  for (let round = 0; round < 5; round += 1) {
    figures.channel.push(await throughChannel())
    figures.pipe.push(await throughPipe())
  }
  for (const [way, values] of Object.entries(figures))
    report('source_hand_over', 'CPU-ms/frame', {
      way,
      p50: quantile(values, 0.5),
      p95: quantile(values, 0.95),
      n: frames * 5,
    })
}

async function firstFrame(server: LoopingRtspServer, clip: string): Promise<void> {
  await server.addStream('/first', clip)
  for (const transport of ['tcp', 'udp']) {
    const tookMs: number[] = []
    for (let round = 0; round < 10; round += 1) {
      const startMs = nowMs()
      const camera = await WatchedSource.start({ url: server.url('/first'), transport }, { format })
      const [frame] = await camera.untilFrames(1, 30_000)
      tookMs.push((frame?.arrivedMs ?? 0) - startMs)
      await camera.source.stop()
    }
    report('source_first_frame', 'ms', {
      transport,
      p50: quantile(tookMs, 0.5),
      p95: quantile(tookMs, 0.95),
      n: 10,
    })
  }
}

async function delay(server: LoopingRtspServer, clip: string): Promise<void> {
  const sentMs: number[] = []
  await server.addStream('/delay', clip, {
    tamper: (unit) => {
      sentMs.push(nowMs())
      return unit.nals
    },
  })
  const camera = await WatchedSource.start({ url: server.url('/delay'), sampleFps: 120 }, { format })
  await camera.untilFrames(300, 60_000)
  const cpuSeconds = camera.source.decoderCpuSeconds()
  await camera.source.stop()
  // Every picture is sampled, so that the n-th frame is the n-th unit sent; the first second holds the start.
  const tookMs = camera.frames.map((frame, index) => frame.arrivedMs - (sentMs[index] ?? 0)).slice(25)
  const figures = { p50: quantile(tookMs, 0.5), p95: quantile(tookMs, 0.95), n: tookMs.length }
  report('source_delay', 'ms', { ...figures, decoderCpuMsPerFrame: (cpuSeconds * 1e3) / 300 })
}

const clip = process.argv[2] ?? fileURLToPath(new URL('../../pipelines/demo/clips/dock.mp4', import.meta.url))
const server = new LoopingRtspServer()
await server.start()
await handOver()
await firstFrame(server, clip)
await delay(server, clip)
await server.stop()
