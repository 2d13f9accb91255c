import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { newestFfmpeg } from '../../scripts/lib/newest-ffmpeg.mjs'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { StandInFfmpeg, type StandInMode } from '../support/stand-in-ffmpeg.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'
import { makeClip, tempFolder } from '../support/video-clips.js'
import { unboundedCard, WatchedSource } from '../support/watched-source.js'

const newest = newestFfmpeg()

/** On a real stream, with an ffmpeg that does on no card what it would do there, or fails as it would. */
describe('an RTSP camera that is decoded on a card', () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    await server.start()
    const source = 'color=red:s=320x180:r=25:d=1,drawbox=x=160:y=0:w=160:h=180:color=blue:t=fill'
    await server.addStream('/dock', await makeClip(folder.file('halves.mp4'), { source, seconds: 1 }))
  })
  afterEach(async () => {
    await watched?.source.stop()
    vi.unstubAllEnvs()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function start(mode: StandInMode, settings: Record<string, unknown> = {}, real?: string) {
    const ffmpeg = new StandInFfmpeg(tempDir(), mode, real)
    vi.stubEnv('PATH', ffmpeg.path)
    const url = server.url('/dock')
    const camera = await WatchedSource.start({ url, hwaccel: 'cuda', ...settings }, { keepPixels: true })
    watched = camera
    const frames = await camera.untilFrames(2, 20_000)
    const { decode } = camera.source.status
    const told = camera.warnings.flatMap(({ kind, detail }) => (kind === 'hwaccel_fallback' ? detail : []))
    return { ffmpeg, camera, pixels: frames[1]!.pixels!, decode, told, frame: frames[1]! }
  }

  it('has the pictures that software gives, wherever they are scaled', { timeout: 60_000 }, async () => {
    const plain = await start('card', { hwaccel: 'none' })
    await watched?.source.stop()
    for (const [mode, by, byReason] of [
      ['card', 'cuda-scaled', ''],
      ['no-scale', 'cuda', 'this ffmpeg has no filter scale_cuda'],
    ] as const) {
      const { camera, pixels, decode, told, frame } = await start(mode)
      expect(decode).toMatchObject({ by, byReason })
      expect(told).toEqual([])
      expect(camera.source.status.attempts).toBe(1)
      const { source, regionPx, letterbox } = plain.frame
      expect(frame).toMatchObject({ source, regionPx, letterbox })
      const apart = pixels.map((value, at) => Math.abs(value - plain.pixels[at]!))
      expect(apart.reduce((sum, each) => sum + each, 0) / apart.length).toBeLessThan(1.5)
      await watched?.source.stop()
    }
  })

  it('cuts its region out in software, and says so', async () => {
    const { ffmpeg, decode } = await start('card', { region: { x: 0.5, y: 0, width: 0.5, height: 1 } })
    expect(decode).toMatchObject({ by: 'cuda', byReason: 'the region is cut out by the processor' })
    expect(ffmpeg.starts[0]).toContain('hwdownload,format=nv12,crop=')
  })

  it.each([
    ['scale-fails', 'cuda', 2, ['GPU 0 does not scale the pictures: scaling in software']],
    ['ten-bits', 'cuda', 3, ['GPU 0 does not scale the pictures: scaling in software']],
    ['no-nvdec', 'software', 1, ['GPU 0 does not decode such a stream: decoding in software']],
    ['full', 'software', 1, ['GPU 0 has no memory left for a decoder: decoding in software']],
  ] as const)('R48: is there all the same when %s, with the reason', async (mode, by, starts, warnings) => {
    const { ffmpeg, camera, decode, told } = await start(mode)
    expect(told).toEqual(warnings)
    expect(decode?.by).toBe(by)
    expect(warnings[0]).toContain(decode?.byReason)
    expect(ffmpeg.starts).toHaveLength(starts)
    expect(camera.statuses.map(({ state }) => state)).not.toContain('backoff')
  })

  it.runIf(newest !== undefined)('R48: is understood with the newest ffmpeg, too', async () => {
    const { ffmpeg, decode } = await start('no-nvdec', {}, join(newest!, 'ffmpeg'))
    expect(decode).toMatchObject({ by: 'software', byReason: 'GPU 0 does not decode such a stream' })
    expect(ffmpeg.starts).toHaveLength(1)
  })

  it('R48: is there all the same when nobody knows what is wrong', { timeout: 30_000 }, async () => {
    const { ffmpeg, decode, told } = await start('mute')
    expect(told).toEqual([
      'no picture came by GPU 0: scaling in software',
      'no picture came by GPU 0: decoding in software',
    ])
    expect(decode).toMatchObject({ by: 'software', byReason: 'no picture came by GPU 0' })
    expect(ffmpeg.starts).toHaveLength(4)
  })

  it('R48: goes over to the card once that has room, for a reconnect', { timeout: 30_000 }, async () => {
    const ffmpeg = new StandInFfmpeg(tempDir(), 'card')
    vi.stubEnv('PATH', ffmpeg.path)
    const card: { refusal?: string } = {
      refusal: 'GPU 0 has 0.1 of 15.0 GiB left, and a decoder takes 560 MiB',
    }
    const camera = await WatchedSource.start(
      { url: server.url('/dock'), hwaccel: 'cuda' },
      { hardware: { ...unboundedCard(), askForCard: async () => ({ device: 0, isSeen: true, ...card }) } },
    )
    watched = camera
    await camera.untilFrames(1)
    expect(camera.source.status.decode).toMatchObject({ by: 'software', byReason: card.refusal })
    delete card.refusal
    camera.source.cardHasRoom?.()
    await until('it is decoded on the card', () => camera.source.status.decode?.by === 'cuda-scaled')
    expect(camera.source.status).toMatchObject({ attempts: 2, decode: { byReason: '' } })
    expect(camera.statuses.map(({ state }) => state)).not.toContain('backoff')
    // It is there by now.
    camera.source.cardHasRoom?.()
    await camera.untilFrames(camera.frames.length + 2)
    expect(camera.source.status.attempts).toBe(2)
    // Those on a card.
    expect(ffmpeg.starts).toHaveLength(1)
  })

  it('asks for room before each start, tells when it has left, and says why it has none', async () => {
    const said: string[] = []
    vi.stubEnv('PATH', new StandInFfmpeg(tempDir(), 'card').path)
    const refusal = 'GPU 0 has 0.1 of 15.0 GiB left, and a decoder takes 560 MiB'
    const camera = await WatchedSource.start(
      { url: server.url('/dock'), hwaccel: 'auto' },
      {
        hardware: {
          ...unboundedCard(),
          askForCard: async () => {
            said.push('asks')
            return { device: 0, isSeen: true, refusal }
          },
          leaveCard: () => said.push('leaves'),
        },
      },
    )
    watched = camera
    await camera.untilFrames(1)
    expect(camera.source.status.decode).toMatchObject({ by: 'software', byReason: refusal })
    expect(camera.warnings.map(({ detail }) => detail)).toEqual([`${refusal}: decoding in software`])
    expect(said).toEqual(['asks'])
    await camera.source.stop()
    expect(said).toEqual(['asks', 'leaves'])
  })
})
