import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { probeVideo } from '../../src/sources/probe-video.js'
import { bothFfmpegs } from '../support/both-ffmpegs.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

describe.each(bothFfmpegs)('a file with several videos, played by %s', (_, program) => {
  const path = process.env['PATH']
  const skips = program === undefined
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const small = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=10:d=2']
    const large = ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=10:d=2']
    const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']
    await ffmpegRun(...small, ...large, '-map', '0', '-map', '1', ...h264, folder.file('angles.mp4'))
    await ffmpegRun(...small, '-frames:v', '1', folder.file('cover.png'))
    const both = [
      '-i',
      folder.file('cover.png'),
      '-i',
      folder.file('angles.mp4'),
      '-map',
      '0',
      '-map',
      '1:v:1',
    ]
    await ffmpegRun(...both, '-c', 'copy', '-disposition:v:0', 'attached_pic', folder.file('covered.mp4'))
    coverFirst(folder.file('covered.mp4'))
    const attached = ['-attach', folder.file('cover.png'), '-metadata:s:t', 'mimetype=image/png']
    await ffmpegRun(
      '-i',
      folder.file('angles.mp4'),
      '-map',
      '0:v:1',
      '-c',
      'copy',
      ...attached,
      folder.file('covered.mkv'),
    )
    const middle = ['-f', 'lavfi', '-i', 'testsrc2=s=240x180:r=10:d=2']
    const three = [...small, ...large, ...middle, '-map', '0', '-map', '1', '-map', '2', ...h264]
    // Programs tell their videos in their own order, and one of them both have.
    await ffmpegRun(...three, '-program', 'st=2:st=0', '-program', 'st=1:st=0', folder.file('programs.ts'))
    if (program !== undefined) process.env['PATH'] = `${program === '' ? '' : `${program}:`}${path}`
  })
  afterEach(() => watched?.source.stop())
  afterAll(async () => {
    process.env['PATH'] = path
    await folder.remove()
  })

  async function watch(url: string, camera: Record<string, unknown> = {}): Promise<WatchedSource> {
    watched = await WatchedSource.start({ url, sampleFps: 10, ...camera }, { mediaRoot: folder.path })
    return watched
  }

  it.skipIf(skips).each([
    [1, 160, 'video 1 of 2: h264, 160 x 120', 'video 2: h264, 320 x 240'],
    [2, 320, 'video 2 of 2: h264, 320 x 240', 'video 1: h264, 160 x 120'],
  ])('shows the one that videoTrack %i names, and says which', async (videoTrack, widthPx, track, other) => {
    const camera = await watch('angles.mp4', { videoTrack })
    const frames = await camera.untilFrames(3)
    expect(frames[0]?.source.widthPx).toBe(widthPx)
    expect(camera.source.status.decode?.track).toBe(track)
    const told = camera.logLines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(told.find(({ msg }) => msg === 'one of several videos is shown, by videoTrack')).toMatchObject({
      shown: track,
      others: [other],
    })
  })

  it.skipIf(skips)('R59: says how many there are where the one that is wanted is not', async () => {
    const camera = await watch('angles.mp4', { videoTrack: 3 })
    expect((await camera.untilState('backoff')).reason).toBe('videoTrack is 3, and there are 2 videos')
  })

  it.skipIf(skips).each(['covered.mp4', 'covered.mkv'])(
    'takes no cover picture for a video, and says nothing of it: %s',
    async (name) => {
      const camera = await watch(name)
      const frames = await camera.untilFrames(3)
      expect(frames[0]?.source.widthPx).toBe(320)
      expect(camera.source.status.decode).not.toHaveProperty('track')
      expect(await probeVideo(folder.file(name))).toMatchObject({ codec: 'h264', widthPx: 320 })
    },
  )

  it.skipIf(skips).each([1, 2, 3])(
    'tells video %i of a stream with two programs as it is',
    async (videoTrack) => {
      const camera = await watch('programs.ts', { videoTrack })
      const { widthPx, heightPx } = (await camera.untilFrames(2))[0]?.source ?? {}
      await camera.until('its name', () => camera.source.status.decode?.track !== undefined)
      const track = `video ${videoTrack} of 3: h264, ${widthPx} x ${heightPx}`
      expect(camera.source.status.decode?.track).toBe(track)
    },
  )
})

/** Puts what stands behind the tracks of an MP4, its cover among it, before them, as some programs write it. */
function coverFirst(path: string): void {
  const bytes = readFileSync(path)
  const [begin, end] = boxes(bytes, 0, bytes.length).get('moov') ?? [0, 0]
  const parts = [...boxes(bytes, begin + 8, end)].map(([kind, [from, to]]) => ({
    kind,
    part: bytes.subarray(from, to),
  }))
  const order = ['mvhd', 'udta', 'trak']
  parts.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
  const moved = Buffer.concat(parts.map(({ part }) => part))
  expect(moved.length).toBe(end - begin - 8)
  writeFileSync(path, Buffer.concat([bytes.subarray(0, begin + 8), moved, bytes.subarray(end)]))
}

/** Where each kind of box of an MP4 stands; there is one of each. */
function boxes(bytes: Buffer, from: number, to: number): Map<string, readonly [from: number, to: number]> {
  const found = new Map<string, readonly [number, number]>()
  for (let at = from; at < to; at += bytes.readUInt32BE(at))
    found.set(bytes.toString('latin1', at + 4, at + 8), [at, at + bytes.readUInt32BE(at)])
  return found
}
