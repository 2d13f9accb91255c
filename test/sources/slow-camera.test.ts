import { createServer, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nowMs } from '../../src/lifecycle/clock.js'
import { networkFailures } from '../../src/sources/failure-reason.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { fullLength } from '../support/full-length.js'
import { codedStream, PacedRtspServer, type CodedStream, type RtpCodec } from '../support/paced-rtsp.js'
import { until } from '../support/until.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type SeenFrame } from '../support/watched-source.js'

/** Beside the pictures: connecting, and a machine that has other things to do. */
const slackMs = 3_500

describe('a camera of few pictures', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  const streams = new Map<string, Promise<CodedStream>>()

  beforeAll(async () => {
    folder = await tempFolder()
  })
  afterAll(async () => {
    await folder.remove()
  })

  /** What a camera of such pictures does, with one that is watched; they run beside each other. */
  async function withCamera(
    [codec, bFrames, everyMs]: readonly [codec: RtpCodec, bFrames: number, everyMs: number],
    look: (camera: WatchedSource, server: PacedRtspServer) => Promise<void>,
    settings: Readonly<{ camera?: Record<string, unknown>; server?: Partial<PacedRtspServer> }> = {},
  ): Promise<void> {
    const name = `${codec}-${bFrames}`
    const stream = streams.get(name) ?? codedStream(folder.file(name), codec, { bFrames })
    streams.set(name, stream)
    const server = await PacedRtspServer.start(await stream, everyMs)
    Object.assign(server, settings.server)
    const camera = await WatchedSource.start({ url: server.url, ...settings.camera })
    try {
      await look(camera, server)
    } finally {
      await camera.source.stop()
      await server.stop()
    }
  }

  const slow = [
    ['h264', 0, 1_000],
    ['h264', 2, 1_000],
    ['h265', 0, 1_000],
    ['h265', 2, 1_000],
    ['mjpeg', 0, 1_000],
    ['h264', 0, 3_000],
    ['h265', 0, 6_000],
    ['h264', 0, 8_000],
    ...(fullLength
      ? ([
          ['h264', 0, 60_000],
          ['h265', 2, 60_000],
          ['mjpeg', 0, 60_000],
        ] as const)
      : []),
  ] as const

  it.concurrent.each(slow)(
    'R61: %s with %i B-frames, a picture each %i ms, is live within two of them, and shows none that is stale',
    (codec, bFrames, everyMs) =>
      withCamera([codec, bFrames, everyMs], async (camera, server) => {
        const beganMs = nowMs()
        const withinMs = (2 + bFrames) * everyMs + slackMs
        await camera.untilFrames(1, withinMs + slackMs)
        expect((camera.frames[0]?.arrivedMs ?? 0) - beganMs).toBeLessThan(withinMs)
        await camera.untilFrames(3, 3 * everyMs + slackMs)
        // They come as they are sent, not several at once.
        expect(steps(camera.frames.slice(0, 3)).filter((stepMs) => stepMs < 0.5 * everyMs)).toEqual([])
        expect(server.sessions).toBe(1)
        expect(new Set(camera.statuses.map(({ state }) => state))).toEqual(new Set(['connecting', 'live']))
        expect(camera.frames.filter(({ quality }) => quality !== 'ok')).toEqual([])
        expect(camera.warnings).toEqual([])
        // By the clock of the camera too; ffmpeg guesses the time of the first one of several that were reordered.
        const times = camera.frames.slice(0, 3).map(({ ptsMs }) => ptsMs)
        const apartMs = times.slice(1).map((ptsMs, index) => Math.round(ptsMs - (times[index] ?? 0)))
        expect(bFrames === 0 ? apartMs : apartMs.slice(1)).toEqual(
          bFrames === 0 ? [everyMs, everyMs] : [everyMs],
        )
      }),
    fullLength ? 420_000 : 60_000,
  )

  it.concurrent('R61: over UDP, a picture each 2000 ms, is live within two of them', async () => {
    const clip = await makeClip(folder.file('slow.mp4'), { fps: 0.5, seconds: 40, gop: 5 })
    const server = new LoopingRtspServer()
    await server.start()
    await server.addStream('/slow', clip)
    const camera = await WatchedSource.start({ url: server.url('/slow'), transport: 'udp' })
    try {
      await camera.untilFrames(1, 2 * 2_000 + slackMs)
      await camera.untilFrames(4, 3 * 2_000 + slackMs)
      expect(steps(camera.frames.slice(0, 4)).filter((stepMs) => stepMs < 1_000)).toEqual([])
      expect(camera.warnings).toEqual([])
    } finally {
      await camera.source.stop()
      await server.stop()
    }
  })

  it.concurrent('R61: one of 60 pictures a second is live at once, and shows them as they come', () =>
    withCamera(
      ['h264', 0, 17],
      async (camera) => {
        await camera.untilFrames(60, 5_000 + slackMs)
        const [first, last] = [camera.frames[0], camera.frames[59]]
        expect((last?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThan(700)
        expect(camera.logLines.filter((line) => line.includes('decoder message'))).toEqual([])
        expect(camera.warnings).toEqual([])
      },
      { camera: { sampleFps: 60 } },
    ),
  )

  it.concurrent('R61: one that is joined between two key frames shows the next of those, whole', () =>
    withCamera(
      ['h264', 0, 800],
      async (camera, server) => {
        await camera.untilFrames(1, 7 * 800 + slackMs)
        expect(server.sentMs).toHaveLength(6)
        expect(camera.frames[0]?.quality).toBe('ok')
        expect(server.sessions).toBe(1)
      },
      { server: { joinsAt: 5 } },
    ),
  )

  it.concurrent('R61: the session of one whose time runs out is kept, between its pictures', () =>
    withCamera(
      ['h264', 0, 6_000],
      async (camera, server) => {
        await camera.untilFrames(3, 14_000 + slackMs)
        expect(server.sessions).toBe(1)
        expect(server.requests.filter((method) => method === 'GET_PARAMETER').length).toBeGreaterThan(3)
        expect(camera.statuses.at(-1)?.state).toBe('live')
      },
      { server: { sessionMs: 2_500 } },
    ),
  )

  it.concurrent(
    'R61: one that sends less at night stays live',
    () =>
      withCamera(['h264', 0, 40], async (camera, server) => {
        await camera.untilFrames(10)
        server.everyMs = 3_000
        const had = camera.frames.length
        await camera.untilFrames(had + 3, 12_000 + slackMs)
        expect(server.sessions).toBe(1)
        expect(camera.statuses.at(-1)?.state).toBe('live')
      }),
    40_000,
  )

  it.concurrent(
    'R61: one that is fast and dies is stalled as soon as ever, though it still answers',
    () =>
      withCamera(['h264', 0, 100], async (camera, server) => {
        await camera.untilFrames(5)
        server.isSilent = true
        const stalled = await camera.untilState('stalled', 10_000)
        expect(stalled.atMs - (camera.frames.at(-1)?.arrivedMs ?? 0)).toBeLessThan(5_200 + 1_000)
        expect(stalled.reason).toMatch(/^no picture for 5\.\d s$/)
      }),
    40_000,
  )

  it.concurrent(
    'R61: one that sends nothing while little moves is opened anew once, and then believed',
    () =>
      withCamera(['h264', 0, 100], async (camera, server) => {
        await camera.untilFrames(5)
        server.isSilent = true
        await camera.untilState('stalled', 10_000)
        await until('another session', () => server.sessions === 2)
        // It is asked after ten seconds, and answers.
        await until('a question', () => server.requests.at(-1) === 'GET_PARAMETER', 25_000)
        expect(camera.statuses.at(-1)?.state).toBe('connecting')
        server.isSilent = false
        const had = camera.frames.length
        await camera.untilFrames(had + 5)
        server.isSilent = true
        const asked = server.requests.length
        await until('a question', () => server.requests.length > asked, 25_000)
        expect(camera.statuses.at(-1)?.state).toBe('live')
        expect(server.sessions).toBe(2)
      }),
    120_000,
  )

  it.concurrent(
    'R61: what the settings say of its silence holds, and is named',
    () =>
      withCamera(
        ['h264', 0, 4_000],
        async (camera) => {
          const stalled = await camera.untilState('stalled', 15_000)
          expect(stalled.reason).toMatch(/^no picture for 2\.\d s \(stallTimeoutMs is 2000\)$/)
        },
        { camera: { stallTimeoutMs: 2_000 } },
      ),
    40_000,
  )

  it.concurrent(
    'says of a camera that takes the connection and never answers what it is',
    async () => {
      const sockets: Socket[] = []
      const server = createServer((socket) => sockets.push(socket))
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const camera = await WatchedSource.start({ url: `rtsp://127.0.0.1:${port}/cam` })
      try {
        expect((await camera.untilState('backoff', 20_000)).reason).toBe(networkFailures.timedOut)
      } finally {
        await camera.source.stop()
        for (const socket of sockets) socket.destroy()
        server.close()
      }
    },
    40_000,
  )
})

const steps = (frames: readonly SeenFrame[]) =>
  frames.slice(1).map(({ arrivedMs }, index) => arrivedMs - (frames[index]?.arrivedMs ?? 0))
