import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startHttpServer, type TestServer } from '../support/http-server.js'
import { mjpegForms } from '../support/mjpeg-forms.js'
import { colourOf, plainPicture, withThumbnail } from '../support/still-pictures.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'
import { WatchedSource } from '../support/watched-source.js'

describe('files of single pictures', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let watched: WatchedSource | undefined
  let server: TestServer | undefined

  beforeAll(async () => {
    folder = await tempFolder()
    const [red, blue] = (await Promise.all(['red', 'blue'].map((name) => plainPicture(name)))) as [
      Buffer,
      Buffer,
    ]
    const pictures = Array.from({ length: 75 }, (_, index) => (index < 38 ? red : blue))
    await ffmpegRun(
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=64x48:r=25:d=3',
      '-q:v',
      '6',
      folder.file('ffmpeg.mjpeg'),
    )
    await writeFile(folder.file('plain.mjpeg'), Buffer.concat(pictures))
    await writeFile(folder.file('plain.mjpg'), Buffer.concat(pictures))
    await writeFile(
      folder.file('thumbnails.mjpeg'),
      Buffer.concat(pictures.map((picture) => withThumbnail(picture, red))),
    )
    await writeFile(folder.file('saved.mjpg'), mjpegForms.plain?.bytes(pictures) ?? '')
    await writeFile(folder.file('one.jpg'), blue)
    await writeFile(folder.file('one.png'), await plainPicture('blue', 'png'))
    await writeFile(folder.file('none.jpg'), 'no picture')
  })
  afterEach(async () => {
    await watched?.source.stop()
    await server?.close()
  })
  afterAll(() => folder.remove())

  const start = async (url: string, camera: Record<string, unknown> = {}) => {
    watched = await WatchedSource.start({ url, sampleFps: 25, ...camera }, { keepPixels: true })
    return watched
  }

  it.each(['ffmpeg.mjpeg', 'plain.mjpeg', 'plain.mjpg', 'thumbnails.mjpeg', 'saved.mjpg'])(
    'R63: plays %s at 25 pictures a second, again and again',
    async (name) => {
      const camera = await start(folder.file(name))
      const frames = await camera.untilFrames(100, 20_000)
      const tookMs = (frames[99]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
      expect(tookMs).toBeGreaterThan(3_000)
      expect(frames[5]?.source).toEqual({ widthPx: 64, heightPx: 48 })
      if (name === 'ffmpeg.mjpeg') return
      expect(colourOf(frames[5]?.pixels ?? null)).toBe('red')
      expect(colourOf(frames[60]?.pixels ?? null)).toBe('blue')
      expect(colourOf(frames[90]?.pixels ?? null)).toBe('red')
    },
  )

  it('R63: plays such a file once where it is not to loop', async () => {
    const camera = await start(folder.file('plain.mjpeg'), { loop: false })
    expect((await camera.untilState('disabled', 15_000)).reason).toBe('the end was reached and loop is off')
    expect(camera.frames.length).toBeGreaterThan(60)
  })

  it.each(['video/x-motion-jpeg', 'application/octet-stream', undefined])(
    'R63: plays a file that a web server has as %s',
    async (type) => {
      const bytes = await readFile(folder.file('plain.mjpeg'))
      server = await startHttpServer((_request, response) => {
        response.writeHead(200, {
          ...(type === undefined ? {} : { 'content-type': type }),
          'content-length': bytes.length,
        })
        response.end(bytes)
      })
      const camera = await start(`${server.base}/a.mjpeg`)
      const frames = await camera.untilFrames(40, 20_000)
      const tookMs = (frames[39]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
      expect(tookMs).toBeGreaterThan(1_000)
      expect(colourOf(frames[5]?.pixels ?? null)).toBe('red')
    },
  )

  it.each(['one.jpg', 'one.png'])('R63: shows %s at the sampling rate', async (name) => {
    const camera = await start(folder.file(name), { sampleFps: 10 })
    const frames = await camera.untilFrames(5)
    expect(frames.map((frame) => colourOf(frame.pixels))).toEqual(Array(5).fill('blue'))
    expect(camera.source.status.state).toBe('live')
  })

  it('R63: says that a picture cannot be read', async () => {
    const camera = await start(folder.file('none.jpg'))
    expect((await camera.untilState('backoff')).reason).toBe('the picture cannot be read')
    expect(camera.warnings[0]?.kind).toBe('decode_error')
  })
})
