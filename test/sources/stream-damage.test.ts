import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import type { AccessUnit } from '../../src/tools/rtsp-server/clip.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const fps = 50
const gop = 25

describe('a stream with faults in it', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined
  let clip: string

  beforeAll(async () => {
    folder = await tempFolder()
    clip = await makeClip(folder.file('clip.mp4'), { fps, gop, seconds: 4 })
    await server.start()
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function watch(path: string, camera: Record<string, unknown> = {}): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url: server.url(path), ...camera })
    return watched
  }

  const noise = (nal: Buffer) => {
    const damaged = Buffer.from(nal)
    for (let at = 24; at < damaged.length; at += 7) damaged[at] = (damaged[at] ?? 0) ^ 0x5a
    return damaged
  }
  const damage: Record<string, (unit: AccessUnit) => readonly Buffer[] | null> = {
    'noise in the slices': (unit) => unit.nals.map(noise),
    'slices that are cut short': (unit) => unit.nals.map((nal) => nal.subarray(0, nal.length / 3)),
    'pictures that are lost over UDP': () => null,
  }

  it.each(Object.keys(damage))(
    'R5: pictures are suspect after %s until the next key frame, and only these',
    async (kind) => {
      const bursts = 10
      // Three pictures of every second group are damaged, a little after its key frame.
      const isDamaged = (n: number) =>
        n >= gop && Math.floor(n / gop) % 2 === 1 && [4, 5, 6].includes(n % gop)
      await server.addStream('/damaged', clip, {
        firstRtpTime: 0,
        tamper: (unit, n) => (isDamaged(n) ? (damage[kind]?.(unit) ?? null) : unit.nals),
      })
      const transport = kind.endsWith('UDP') ? 'udp' : 'tcp'
      const camera = await watch('/damaged', { sampleFps: fps, transport })
      const seconds = (2 * gop * bursts) / fps
      await camera.until(
        'all bursts',
        () => (camera.frames.at(-1)?.ptsMs ?? 0) > (seconds + 0.4) * 1e3,
        60_000,
      )
      const group = (frame: { ptsMs: number }) => Math.floor((frame.ptsMs * fps) / 1e3 / gop + 1e-6)
      // ffmpeg guesses the time of the first pictures, so that the edges of a group may be off by one.
      const isInner = (frame: { ptsMs: number }, first: number) => {
        const place = Math.round((frame.ptsMs * fps) / 1e3) % gop
        return place >= first && place < gop - 2
      }

      const marked = Array.from({ length: bursts }, (_, index) => index * 2 + 1).filter((number) => {
        const after = camera.frames.filter((frame) => group(frame) === number && isInner(frame, 8))
        return after.length > 0 && after.every((frame) => frame.quality === 'suspect')
      })
      expect(marked.length / bursts).toBeGreaterThanOrEqual(0.95)
      const sound = camera.frames.filter((frame) => group(frame) % 2 === 0 && isInner(frame, 2))
      expect(sound.filter((frame) => frame.quality === 'suspect')).toEqual([])
      expect(camera.warnings.filter(({ kind: warned }) => warned === 'decode_error').length).toBeGreaterThan(
        0,
      )
      expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
    },
    90_000,
  )

  it.each([
    ['an hour back', -3_600_000],
    ['an hour ahead', 3_600_000],
  ])('R4: frames go on when the time of the stream jumps %s', async (_, byMs) => {
    const stream = await server.addStream('/jump', clip, { firstRtpTime: 90_000 * 7_200 })
    const camera = await watch('/jump', { sampleFps: 10 })
    await camera.untilFrames(10)
    stream.shiftMs = byMs
    await camera.until('the jump to be told', () => jumps(camera).length > 0)
    const at = camera.frames.length
    await camera.untilFrames(at + 15)
    expectSteady(camera)
    expect(jumps(camera)).toHaveLength(1)
    expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
  })

  it('R4: nothing happens when the 32 bits of RTP time run over, B-frames and all', async () => {
    const reordered = await makeClip(folder.file('b-frames.mp4'), {
      fps: 25,
      gop: 25,
      bFrames: 2,
      seconds: 2,
    })
    await server.addStream('/wrap', reordered, { firstRtpTime: 2 ** 32 - 90_000 })
    const camera = await watch('/wrap', { sampleFps: 10 })
    await camera.untilFrames(25)
    expectSteady(camera)
    expect(jumps(camera)).toEqual([])
    const times = camera.frames.map((frame) => frame.ptsMs)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  const jumps = (camera: WatchedSource) => camera.warnings.filter(({ kind }) => kind === 'pts_discontinuity')

  /** Ten frames a second came the whole time, and none was stamped before the one ahead of it. */
  function expectSteady(camera: WatchedSource): void {
    const gaps = camera.frames
      .slice(1)
      .map((frame, index) => frame.arrivedMs - (camera.frames[index]?.arrivedMs ?? 0))
    expect(Math.max(...gaps)).toBeLessThan(1_000)
    const walls = camera.frames.map((frame) => frame.capturedAtMs)
    expect(walls).toEqual([...walls].sort((a, b) => a - b))
  }
})
