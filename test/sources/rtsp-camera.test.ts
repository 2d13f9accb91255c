import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { nowMs } from '../../src/lifecycle/clock.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import type { ServedStream } from '../../src/tools/rtsp-server/served-stream.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

const credentials = { user: 'inspector', password: 'c4nary@p:w/ü' }
const login = `inspector:${encodeURIComponent(credentials.password)}`

describe('an RTSP camera', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let stream: ServedStream
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const clip = await makeClip(folder.file('clip.mp4'))
    await server.start()
    stream = await server.addStream('/open', clip)
    await server.addStream('/basic', clip, { credentials: { scheme: 'basic', ...credentials } })
    await server.addStream('/digest', clip, { credentials: { scheme: 'digest', ...credentials } })
    await server.addStream('/udp-only', clip, { transports: ['udp'] })
  })
  afterEach(async () => {
    await watched?.source.stop()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function start(camera: Readonly<{ url: string } & Record<string, unknown>>): Promise<WatchedSource> {
    watched = await WatchedSource.start(camera)
    return watched
  }

  it.each(['tcp', 'udp'])('delivers frames over %s, numbered, timed and in order', async (transport) => {
    const startedMs = nowMs()
    const camera = await start({ url: server.url('/open'), transport })
    const frames = await camera.untilFrames(8)
    expect(frames.map((frame) => frame.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(frames[0]).toMatchObject({
      cameraId: 'cam',
      quality: 'ok',
      source: { widthPx: 320, heightPx: 180 },
    })
    const steps = frames.slice(1).map((frame, index) => frame.ptsMs - (frames[index]?.ptsMs ?? 0))
    for (const stepMs of steps) expect(stepMs).toBeGreaterThanOrEqual(120)
    expect((frames[7]?.ptsMs ?? 0) - (frames[0]?.ptsMs ?? 0)).toBeCloseTo(1_400, -2)
    expect(frames[0]?.arrivedMs).toBeGreaterThan(startedMs)
    expect(camera.statuses.map((status) => status.state)).toEqual(['connecting', 'connecting', 'live'])
    expect(server.sessions('/open')).toBe(1)
  })

  it('ends its session with TEARDOWN when it is stopped', async () => {
    const camera = await start({ url: server.url('/open') })
    await camera.untilFrames(1)
    const before = stream.teardowns
    await camera.source.stop()
    expect(stream.teardowns).toBe(before + 1)
    expect(server.sessions('/open')).toBe(0)
    expect(camera.warnings).toEqual([])
  })

  it.each(['/basic', '/digest'])('logs in to %s with a password that needs encoding', async (path) => {
    const camera = await start({ url: server.url(path, login) })
    await camera.untilFrames(2)
  })

  it('says that credentials were refused, and does not hammer the camera', async () => {
    const camera = await start({ url: server.url('/digest', 'inspector:c4nary-wrong') })
    const status = await camera.untilState('backoff')
    expect(status.reason).toBe('credentials refused (401)')
    // What is left of at least 3 s when it is read.
    expect(status.retryInMs).toBeGreaterThan(2_000)
  })

  it.each([
    ['/nowhere', 'stream not found on the camera (404)'],
    ['/udp-only', 'transport refused: set transport to the other of tcp and udp'],
  ])('names the cause when %s cannot be had', async (path, reason) => {
    const camera = await start({ url: server.url(path) })
    expect((await camera.untilState('backoff')).reason).toBe(reason)
  })

  it('says that the connection was refused when nobody listens', async () => {
    const gone = new LoopingRtspServer()
    await gone.start()
    const url = gone.url('/open')
    await gone.stop()
    const camera = await start({ url })
    expect((await camera.untilState('backoff')).reason).toBe(
      'connection refused: check host and port, and that the camera is on',
    )
  })
})
