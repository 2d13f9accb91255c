import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newestFfmpeg } from '../../scripts/lib/newest-ffmpeg.mjs'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { codedStream, PacedRtspServer } from '../support/paced-rtsp.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const newest = newestFfmpeg()

describe.skipIf(newest === undefined)('cameras, decoded by the newest ffmpeg', () => {
  const server = new LoopingRtspServer()
  const path = process.env.PATH
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'), { bFrames: 2 })
    await server.start()
    await server.addStream('/cam', clip)
    process.env.PATH = `${newest}:${path}`
  })
  afterEach(() => watched?.source.stop())
  afterAll(async () => {
    process.env.PATH = path
    await server.stop()
    await folder.remove()
  })

  it.each([
    ['RTSP over TCP', () => ({ url: server.url('/cam') })],
    ['RTSP over UDP', () => ({ url: server.url('/cam'), transport: 'udp' })],
    ['key frames alone', () => ({ url: server.url('/cam'), decode: 'keyframes', sampleFps: 1 })],
    ['a file', () => ({ url: 'clip.mp4' })],
  ])(
    'R47: %s: frames come with their times and sizes, unsuspected, and nothing is warned of',
    async (_, of) => {
      watched = await WatchedSource.start(of(), { mediaRoot: folder.path })
      const frames = await watched.untilFrames(4, 20_000)
      expect(frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
      for (const [index, { source, quality, ptsMs }] of frames.entries()) {
        expect({ source, quality }).toEqual({ source: { widthPx: 320, heightPx: 180 }, quality: 'ok' })
        if (index > 0) expect(ptsMs - (frames[index - 1]?.ptsMs ?? 0)).toBeGreaterThanOrEqual(120)
      }
      expect(watched.warnings).toEqual([])
      expect(watched.statuses.map(({ state }) => state)).not.toContain('reconnecting')
    },
  )

  it.each(['h264', 'h265', 'mjpeg'] as const)(
    'R47: a slow camera of %s is shown as it sends',
    async (codec) => {
      const slow = await PacedRtspServer.start(await codedStream(folder.file(codec), codec), 1_500)
      try {
        watched = await WatchedSource.start({ url: slow.url })
        const frames = await watched.untilFrames(3, 20_000)
        const lateMs = frames.map(({ arrivedMs }, n) => arrivedMs - (slow.sentMs[n] ?? 0))
        expect(Math.max(...lateMs)).toBeLessThan(1_400)
        expect(frames.map(({ ptsMs }) => Math.round(ptsMs / 100))).toEqual([0, 15, 30])
        expect(watched.warnings).toEqual([])
      } finally {
        await watched?.source.stop()
        await slow.stop()
      }
    },
  )
})
