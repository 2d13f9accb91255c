import { readFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { bothFfmpegs } from '../support/both-ffmpegs.js'
import { isSlice, nalType, pictureUnits, type PictureUnits, type VideoCodec } from '../support/annex-b.js'
import { UnitRtspServer, type ServedUnits } from '../support/unit-rtsp-server.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'
import { WatchedSource, type SeenFrame } from '../support/watched-source.js'

const fps = 25
const gop = 25
const codecs: readonly VideoCodec[] = ['h264', 'h265']

/** Cameras send them, and no picture suffers: what decoders say of them is no damage. */
const habits: Record<string, (codec: VideoCodec, picture: PictureUnits) => PictureUnits> = {
  'filler data': (codec, picture) => [...picture, unit(codec, 12, 38, 'ffff80')],
  'SEI that ends in the middle': (codec, picture) => [unit(codec, 6, 39, '054061626380'), ...picture],
  'SEI of a kind that nobody knows': (codec, picture) => [unit(codec, 6, 39, 'c802616280'), ...picture],
  'picture timing that belongs to no stream': (codec, picture) => [
    unit(codec, 6, 39, '01019080'),
    ...picture,
  ],
  'units of types that nobody uses': (codec, picture) => [
    unit(codec, 30, 60, '6162638080'),
    unit(codec, 20, 41, '6162638080'),
    ...picture,
  ],
}

describe.each(bothFfmpegs)('a stream of a camera, decoded by %s', (_, program) => {
  const path = process.env['PATH']
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let server: UnitRtspServer
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    if (program === undefined) return
    folder = await tempFolder()
    const served: Record<string, ServedUnits> = {}
    for (const codec of codecs) {
      const pictures = await encoded(codec)
      const stream = { codec, pictures, fps }
      served[`/${codec}-whole`] = { ...stream, describes: true }
      served[`/${codec}-joined`] = { ...stream, from: 8, describes: true }
      served[`/${codec}-undescribed`] = { ...stream, from: 8 }
      served[`/${codec}-repeated`] = { ...stream, repeats: (packet) => packet % 5 === 0 }
      for (const [index, habit] of Object.values(habits).entries())
        served[`/${codec}-habit-${index}`] = {
          ...stream,
          pictures: pictures.map((units) => habit(codec, units)),
        }
      served[`/${codec}-sei`] = {
        ...stream,
        pictures: pictures.flatMap((units) => [units, [unit(codec, 6, 39, 'c802616280')]]),
      }
      served[`/${codec}-lost`] = {
        ...stream,
        pictures: pictures.filter((units, n) => n % (2 * gop) !== 5 || isKey(codec, units)),
      }
    }
    served['/refreshed'] = { codec: 'h264', pictures: await refreshed(), fps, from: 8 }
    server = await UnitRtspServer.start(served)
    process.env['PATH'] = `${program === '' ? '' : `${program}:`}${path}`
  })
  afterEach(() => watched?.source.stop())
  afterAll(async () => {
    process.env['PATH'] = path
    if (program === undefined) return
    await server.stop()
    await folder.remove()
  })

  /** Five seconds and more, with B-frames and two key frames a second. */
  async function encoded(codec: VideoCodec): Promise<readonly PictureUnits[]> {
    const file = folder.file(`clip.${codec}`)
    const params = `keyint=${gop}:min-keyint=${gop}:scenecut=0:bframes=2`
    const coder =
      codec === 'h264'
        ? ['-c:v', 'libx264', '-x264-params', params]
        : ['-c:v', 'libx265', '-x265-params', `${params}:log-level=none`]
    // So much of it that ffmpeg has probed all it wants before the next key frame comes.
    const source = ['-f', 'lavfi', '-i', `testsrc2=s=320x240:r=${fps}:d=4`, '-vf', 'noise=alls=20']
    await ffmpegRun(...source, ...coder, '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-crf', '28', file)
    return pictureUnits(codec, await readFile(file))
  }

  /** Eight seconds of a picture that is refreshed each second, piece by piece; only the first one is whole. */
  async function refreshed(): Promise<readonly PictureUnits[]> {
    const file = folder.file('refreshed.h264')
    const coder = ['-c:v', 'libx264', '-x264-params', `intra-refresh=1:keyint=${gop}:bframes=0`]
    const source = ['-f', 'lavfi', '-i', `testsrc2=s=320x240:r=${fps}:d=8`]
    await ffmpegRun(...source, ...coder, '-preset', 'veryfast', '-pix_fmt', 'yuv420p', file)
    return pictureUnits('h264', await readFile(file))
  }

  async function watch(url: string, transport = 'tcp'): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url: server.url(url), sampleFps: fps, transport })
    return watched
  }

  const skips = program === undefined
  for (const codec of codecs) {
    it.skipIf(skips).each(['joined', 'undescribed'])(
      `R59: ${codec} that is %s between two key frames is ok from the first one on, and damaged nowhere`,
      async (how) => {
        const camera = await watch(`/${codec}-${how}`)
        const frames = await camera.untilFrames(2 * gop, 30_000)
        const firstOk = frames.findIndex(({ quality }) => quality === 'ok')
        expect(firstOk).toBeLessThan(gop)
        expect(qualities(frames.slice(firstOk))).toEqual(['ok'])
        expect(damages(camera)).toEqual([])
      },
    )

    it.skipIf(skips).each(Object.keys(habits).map((name, index) => [name, `habit-${index}`] as const))(
      `R59: ${codec} with %s is ok, and not warned of`,
      async (_habit, name) => {
        const camera = await watch(`/${codec}-${name}`)
        expect(qualities(await camera.untilFrames(2 * gop, 30_000))).toEqual(['ok'])
        expect(camera.warnings).toEqual([])
      },
    )

    it.skipIf(skips)(`R59: ${codec} with SEI in packets of their own is ok`, async () => {
      const camera = await watch(`/${codec}-sei`)
      expect(qualities(await camera.untilFrames(gop, 30_000))).toEqual(['ok'])
      expect(camera.warnings.filter(({ kind }) => kind !== 'pts_discontinuity')).toEqual([])
    })

    it.skipIf(skips)(`R59: ${codec} of which the network repeats packets is ok`, async () => {
      const camera = await watch(`/${codec}-repeated`, 'udp')
      expect(qualities(await camera.untilFrames(2 * gop, 30_000))).toEqual(['ok'])
      expect(damages(camera)).toEqual([])
    })
  }

  it.skipIf(skips)(
    'R59: h264 without key frames that is joined in the middle is shown from its first whole refresh on, and ok',
    async () => {
      const camera = await watch('/refreshed')
      const frames = await camera.untilFrames(gop, 30_000)
      expect(qualities(frames)).toEqual(['ok'])
      expect(camera.warnings).toEqual([])
      // By the time of the stream: its one whole picture comes again after seven and a half seconds.
      expect(frames[0]?.ptsMs).toBeLessThan(3_000)
    },
  )

  it.skipIf(skips)(
    'R59: h265 that its camera lost a picture of is suspect from there to the next key frame',
    async () => {
      const camera = await watch('/h265-lost')
      await camera.until('damage', () => damages(camera).length > 0, 20_000)
      const at = camera.frames.length
      await camera.until(
        'the next key frame',
        () => camera.frames.slice(at).some(({ quality }) => quality === 'ok'),
        10_000,
      )
      expect(camera.frames.slice(at).filter(({ quality }) => quality === 'ok').length).toBeGreaterThan(0)
      expect(camera.frames.filter(({ quality }) => quality === 'suspect').length).toBeGreaterThan(
        program === '' ? 5 : -1,
      )
    },
  )
})

function unit(codec: VideoCodec, h264Type: number, h265Type: number, payload: string): Buffer {
  const head = codec === 'h264' ? [h264Type] : [h265Type << 1, 1]
  return Buffer.concat([Buffer.from(head), Buffer.from(payload, 'hex')])
}

function isKey(codec: VideoCodec, picture: PictureUnits): boolean {
  return picture.some(
    (nal) =>
      isSlice(codec, nal) && (codec === 'h264' ? nalType(codec, nal) === 5 : nalType(codec, nal) >= 16),
  )
}

function qualities(frames: readonly SeenFrame[]): readonly string[] {
  return [...new Set(frames.map(({ quality }) => quality))]
}

function damages(camera: WatchedSource): readonly unknown[] {
  return camera.warnings.filter(({ kind }) => kind === 'decode_error')
}
