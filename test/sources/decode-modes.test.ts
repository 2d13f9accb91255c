import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { ffmpegRun, makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

type Camera = Readonly<{ url: string } & Record<string, unknown>>

describe('a camera of whose stream less is decoded', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    await server.start()
    const clips = {
      half: { gop: 12, seconds: 3, bFrames: 2 },
      rare: { gop: 50, seconds: 4 },
      endless: { gop: 750, seconds: 30 },
    }
    for (const [name, spec] of Object.entries(clips))
      await server.addStream(`/${name}`, await makeClip(folder.file(`${name}.mp4`), spec))
    const refreshed = [
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-intra-refresh',
      '1',
      '-g',
      '25',
      '-bf',
      '0',
    ]
    const noKeys = await makeClip(folder.file('refreshed.mp4'), {
      codec: [...refreshed, '-pix_fmt', 'yuv420p'],
    })
    await server.addStream('/refreshed', noKeys)
    const hevc = [
      '-c:v',
      'libx265',
      '-preset',
      'ultrafast',
      '-x265-params',
      'keyint=12:min-keyint=12:log-level=none',
    ]
    await makeClip(folder.file('hevc.mp4'), { codec: [...hevc, '-pix_fmt', 'yuv420p'] })
    await ffmpegRun('-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=10:d=3', '-c:v', 'mjpeg', folder.file('m.avi'))
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function start(camera: Camera, options: WatchOptions = {}): Promise<WatchedSource> {
    watched = await WatchedSource.start(camera, { mediaRoot: folder.path, ...options })
    return watched
  }

  const kinds = (camera: WatchedSource) => camera.warnings.map(({ kind }) => kind)

  it.each(['tcp', 'udp'])('shows its key frames alone, over %s', async (transport) => {
    const camera = await start({ url: server.url('/half'), transport, decode: 'keyframes', sampleFps: 2 })
    const frames = await camera.untilFrames(5)
    const steps = frames.slice(1).map((frame, at) => Math.round(frame.ptsMs - frames[at]!.ptsMs))
    // The clip begins again after 75 pictures, of which the last group has three.
    for (const step of steps) expect([480, 600]).toContain(step)
    expect(camera.source.status).toMatchObject({ state: 'live', reason: '', decode: { mode: 'keyframes' } })
    expect(kinds(camera)).toEqual([])
  })

  it('shows those of H.265', async () => {
    const camera = await start({ url: 'hevc.mp4', decode: 'keyframes', sampleFps: 25 })
    const frames = await camera.untilFrames(4)
    expect(frames.map(({ ptsMs }) => Math.round(ptsMs - frames[0]!.ptsMs))).toEqual([0, 480, 960, 1_440])
  })

  it('shows the very pictures that a decoder of all of them shows', async () => {
    const options = { keepPixels: true }
    const alone = await start({ url: 'half.mp4', decode: 'keyframes', sampleFps: 25 }, options)
    const [, second] = await alone.untilFrames(2)
    await alone.source.stop()
    const all = await start({ url: 'half.mp4', sampleFps: 25 }, options)
    await all.until('the same picture', () => all.frames.some(({ ptsMs }) => ptsMs === second?.ptsMs))
    const same = all.frames.find(({ ptsMs }) => ptsMs === second?.ptsMs)
    expect(Buffer.compare(second!.pixels!, same!.pixels!)).toBe(0)
  })

  it('R34: says once at which rate results come, and is not taken for silent between key frames', async () => {
    const rare = { url: server.url('/rare'), decode: 'keyframes', stallTimeoutMs: 1_500 }
    const camera = await start(rare)
    await camera.untilFrames(3, 15_000)
    expect(camera.source.status).toMatchObject({
      state: 'live',
      attempts: 1,
      reason: 'key frames come every 2 s: 0.5 results a second instead of 5',
      decode: { mode: 'keyframes', keyFrameGapMs: 2_000 },
    })
    expect(kinds(camera)).toEqual(['few_key_frames'])
  }, 30_000)

  it('R34: is silent when no pictures come, though its server reports', async () => {
    const stream = await server.addStream('/quiet', folder.file('half.mp4'))
    const camera = await start({ url: server.url('/quiet'), decode: 'keyframes', stallTimeoutMs: 800 })
    await camera.untilFrames(2)
    stream.silent = true
    await camera.untilState('stalled', 4_000)
  })

  it('is live on its first key frame alone, however long the next one takes', async () => {
    const camera = await start({ url: server.url('/endless'), decode: 'keyframes', stallTimeoutMs: 500 })
    await camera.untilFrames(1)
    const since = camera.statuses.length
    await expect(camera.until('another word', () => camera.statuses.length > since, 2_500)).rejects.toThrow(
      'live',
    )
  })

  it('shows no picture of which a part is missing, where a stream is refreshed piece by piece', async () => {
    const camera = await start({ url: server.url('/refreshed'), decode: 'keyframes', sampleFps: 25 })
    await camera.untilFrames(1)
    // Three seconds long, with one whole picture.
    await camera.untilFrames(2)
    expect(camera.frames[1]!.ptsMs - camera.frames[0]!.ptsMs).toBeCloseTo(3_000, -2)
  })

  it('R34: auto takes key frames alone once they are enough, says so, and begins one more time', async () => {
    const camera = await start({
      url: server.url('/half'),
      decode: 'auto',
      sampleFps: 1,
      stallTimeoutMs: 2_000,
    })
    const isAlone = () => camera.source.status.decode?.mode === 'keyframes'
    await camera.until('key frames alone', isAlone, 15_000)
    expect(camera.source.status).toMatchObject({ attempts: 2 })
    expect(camera.source.status.decode?.reason).toMatch(
      /^key frames come every 0\.\d+ s, and sampleFps is 1$/,
    )
    expect(camera.logLines.join('')).toContain('"decode":"keyframes"')
    const had = camera.frames.length
    await camera.untilFrames(had + 3, 10_000)
    expect(camera.source.status.attempts).toBe(2)
    expect(kinds(camera)).toEqual([])
  }, 40_000)

  it('R34: auto goes back to every picture when key frames stay away, and forth no more for a while', async () => {
    let rare = false
    // A camera whose codec stretches the gap: later key frames get lost on the way, the other packets come.
    await server.addStream('/stretched', folder.file('half.mp4'), {
      tamper: (unit) => (rare && unit.key ? null : unit.nals),
    })
    const camera = await start({
      url: server.url('/stretched'),
      ...{ decode: 'auto', sampleFps: 1, stallTimeoutMs: 1_000 },
    })
    await camera.until('key frames alone', () => camera.source.status.decode?.mode === 'keyframes', 15_000)
    rare = true
    await camera.until('every picture', () => camera.source.status.attempts === 3, 10_000)
    expect(camera.statuses.map(({ state }) => state)).not.toContain('stalled')
    rare = false
    await camera.until('live again', () => camera.source.status.decode?.mode === 'full', 15_000)
  }, 60_000)

  it.each(['full', 'fast'] as const)('shows every picture that is wanted with %s', async (decode) => {
    const camera = await start({ url: server.url('/half'), decode, sampleFps: 25 })
    const frames = await camera.untilFrames(20)
    expect(frames[19]!.ptsMs - frames[0]!.ptsMs).toBeLessThan(1_500)
    expect(camera.source.status.decode).toMatchObject({ mode: decode, reason: '' })
  })

  it.each([
    ['fast', 'full', 'mjpeg is decoded without a loop filter anyway'],
    ['keyframes', 'keyframes', ''],
    ['auto', 'full', 'every picture of mjpeg is a key frame'],
  ])('of single JPEGs says with %s what becomes of it', async (decode, mode, reason) => {
    const camera = await start({ url: 'm.avi', decode })
    await camera.untilFrames(6)
    expect(camera.source.status.decode).toMatchObject({ mode, reason })
  })

  it.each(['fast', 'keyframes'])('says without a stream that it is refused: %s', async (decode) => {
    const camera = await start({ url: 'push:', decode })
    expect(camera.source.status).toMatchObject({ state: 'failed' })
    expect(camera.source.status.reason).toContain(
      `decode is ${decode}, and pictures that are pushed are no stream`,
    )
  })
})
