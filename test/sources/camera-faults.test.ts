import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { nowMs } from '../../src/lifecycle/clock.js'
import { ConnectGate } from '../../src/sources/connect-gate.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { networkFailures } from '../../src/sources/failure-reason.js'
import { ServerProcess } from '../support/child.js'
import { freePort } from '../support/free-port.js'
import { fullLength } from '../support/full-length.js'
import { childOf, childrenOf, openFiles, processInfo } from '../support/processes.js'
import { until } from '../support/until.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

const supportFile = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url))
const decoders = () => childrenOf(process.pid, 'ffmpeg')

describe('a camera in trouble', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let clip: string
  const cleanUp: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    folder = await tempFolder()
    clip = await makeClip(folder.file('clip.mp4'))
  })
  afterEach(async () => {
    for (const clean of cleanUp.splice(0).reverse()) await clean()
    expect(decoders()).toEqual([])
  })
  afterAll(async () => {
    await folder.remove()
  })

  async function watch(camera: { url: string } & Record<string, unknown>, options: WatchOptions = {}) {
    const watched = await WatchedSource.start(camera, options)
    cleanUp.push(() => watched.source.stop())
    return watched
  }

  async function serve(): Promise<LoopingRtspServer> {
    const server = new LoopingRtspServer()
    await server.start()
    await server.addStream('/cam', clip)
    cleanUp.push(() => server.stop())
    return server
  }

  /** The server as a process that can be frozen, and its URL. */
  async function serveApart(): Promise<{ process: ServerProcess; url: string }> {
    const port = await freePort()
    const args = [supportFile('rtsp-server-child.mjs'), String(port), '/cam', clip]
    const apart = ServerProcess.start(process.execPath, args, folder.file('server.log'))
    cleanUp.push(() => apart.end('SIGKILL'))
    return { process: apart, url: `rtsp://127.0.0.1:${port}/cam` }
  }

  it('comes back when its decoder is killed', async () => {
    const server = await serve()
    const camera = await watch({ url: server.url('/cam') })
    await camera.untilFrames(3)
    process.kill(childOf(process.pid, 'ffmpeg').pid, 'SIGKILL')
    await camera.untilState('backoff', 2_000)
    const had = camera.frames.length
    await camera.untilFrames(had + 3, 5_000)
    expect(camera.statuses.map((status) => status.state)).toEqual([
      ...['connecting', 'connecting', 'live', 'backoff'],
      ...['connecting', 'connecting', 'live'],
    ])
    expect(camera.frames.map((frame) => frame.seq)).toEqual(camera.frames.map((_, index) => index + 1))
  })

  it('R1: is stalled when its server freezes without a word, and returns when it thaws; its neighbour notices nothing', async () => {
    const stallTimeoutMs = fullLength ? 5_000 : 2_000
    const [apart, other] = [await serveApart(), await serve()]
    const sampleFps = 5
    const bystander = await watch({ url: other.url('/cam'), sampleFps })
    await bystander.untilFrames(1)
    const [beganMs, seenBefore] = [nowMs(), bystander.frames.length]
    for (let round = 0; round < (fullLength ? 10 : 1); round += 1) {
      const camera = await WatchedSource.start({ url: apart.url, stallTimeoutMs }, { random: () => 0.5 })
      cleanUp.push(() => camera.source.stop())
      await camera.untilFrames(3, 20_000)
      const frozenMs = nowMs()
      apart.process.freeze()

      const stalled = await camera.untilState('stalled', stallTimeoutMs + 3_000)
      expect(stalled.atMs - frozenMs).toBeLessThanOrEqual(stallTimeoutMs + 1_000)
      const backoff = await camera.untilState('backoff', 5_000)
      expect(backoff.atMs - stalled.atMs).toBeLessThanOrEqual(2_000)

      const retriedAt = camera.statuses.length
      await camera.untilState('connecting', 5_000, retriedAt)
      const [thawedMs, had] = [nowMs(), camera.frames.length]
      apart.process.resume()
      await camera.untilFrames(had + 1, 8_000)
      expect((camera.frames[had]?.arrivedMs ?? 0) - thawedMs).toBeLessThanOrEqual(5_000)
      await camera.source.stop()
    }
    // A frame more or less is where the ends of the time fall.
    const [due, seen] = [((nowMs() - beganMs) / 1_000) * sampleFps, bystander.frames.length - seenBefore]
    expect(seen).toBeGreaterThanOrEqual(0.95 * due - 1)
    expect(seen).toBeLessThanOrEqual(1.05 * due + 1)
  }, 300_000)

  it('R2: is stalled when pictures end while the server still reports', async () => {
    const server = await serve()
    const stream = await server.addStream('/quiet', clip)
    const camera = await watch({ url: server.url('/quiet'), stallTimeoutMs: 1_000 })
    await camera.untilFrames(2)
    stream.silent = true
    await camera.untilState('stalled', 4_000)
    stream.silent = false
    const had = camera.frames.length
    await camera.untilFrames(had + 2, 10_000)
  })

  it('R7: many cameras return after an outage, one session each, few starting at once', async () => {
    const [count, outageMs] = fullLength ? [32, 60_000] : [8, 0]
    const gate = new ConnectGate(4)
    const server = await serve()
    const paths = Array.from({ length: count }, (_, index) => `/cam${index}`)
    const streams = await Promise.all(paths.map((path) => server.addStream(path, clip)))
    const cameras = await Promise.all(
      paths.map((path) => watch({ url: server.url(path), sampleFps: 2 }, { gate })),
    )
    await Promise.all(cameras.map((camera) => camera.untilFrames(1, 60_000)))
    await server.stop()
    await pause(outageMs)
    await Promise.all(
      cameras.map((camera) => camera.until('two refusals', () => refusals(camera) >= 2, 20_000)),
    )
    expect(gate.peak).toBeLessThanOrEqual(4)
    const had = cameras.map((camera) => camera.frames.length)
    await server.start()
    const isBack = (index: number) => (cameras[index]?.frames.length ?? 0) > (had[index] ?? 0)
    const back = () => paths.filter((_, index) => isBack(index)).length
    await until('19 of 20 cameras', () => back() >= 0.95 * count, 35_000)
    await until('all cameras', () => back() === count, 35_000)
    expect(streams.map((stream) => stream.peak)).toEqual(paths.map(() => 1))
  }, 240_000)

  const refusals = (camera: WatchedSource) =>
    camera.statuses.filter((status) => status.reason === networkFailures.refused).length

  it('R3: starts and stops leave no process and no open file', async () => {
    const server = await serve()
    const cycle = async (index: number) => {
      const camera = await WatchedSource.start({ url: server.url('/cam') })
      // Stopped at every stage: at once, while connecting, when live.
      if (index % 3 === 1) await until('a decoder', () => decoders().length > 0)
      if (index % 3 === 2) await camera.untilFrames(1)
      await camera.source.stop()
      expect(decoders()).toEqual([])
      const told = camera.statuses.length + camera.frames.length + camera.warnings.length
      return () => expect(camera.statuses.length + camera.frames.length + camera.warnings.length).toBe(told)
    }
    for (let index = 0; index < 3; index += 1) await cycle(index)
    await until('closed sessions', () => server.sessions('/cam') === 0)
    const before = openFiles()
    const silentAfterStop: (() => void)[] = []
    for (let index = 0; index < (fullLength ? 200 : 30); index += 1) silentAfterStop.push(await cycle(index))
    await until('closed sessions', () => server.sessions('/cam') === 0)
    expect(Math.abs(openFiles() - before)).toBeLessThanOrEqual(5)
    for (const check of silentAfterStop) check()
  }, 600_000)

  it('R3: the decoder dies with a service that is killed, even while the camera is frozen', async () => {
    const apart = await serveApart()
    await until('the server', async () => (await canConnect(apart.url)) || undefined, 20_000)
    const owner = spawn(process.execPath, [supportFile('camera-owner.mjs'), apart.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    cleanUp.push(async () => owner.kill('SIGKILL'))
    await once(owner.stdout, 'data')
    const decoder = childOf(owner.pid ?? 0, 'ffmpeg')
    apart.process.freeze()
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    await until('the end of the decoder', () => processInfo(decoder.pid) === undefined, 2_000)
  })
})

async function canConnect(url: string): Promise<boolean> {
  const { connect } = await import('node:net')
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}
