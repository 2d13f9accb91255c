import { createGzip, constants } from 'node:zlib'
import sharp from 'sharp'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DigestGuard } from '../support/digest-server.js'
import { startHttpServer, type TestServer } from '../support/http-server.js'
import { mjpegForms } from '../support/mjpeg-forms.js'
import { startMjpegServer, type MjpegHabits, type MjpegServer } from '../support/mjpeg-server.js'
import { colourOf, plainPicture, withoutTables, withThumbnail } from '../support/still-pictures.js'
import { WatchedSource } from '../support/watched-source.js'

const colours = ['red', 'lime', 'blue']

describe('an HTTP camera that sends single pictures', () => {
  let pictures: readonly Buffer[]
  let watched: WatchedSource | undefined
  let server: TestServer | undefined
  let served: MjpegServer | undefined

  beforeAll(async () => {
    const [red, green, blue, white] = (await Promise.all(
      [...colours, 'white'].map((colour) => plainPicture(colour)),
    )) as [Buffer, Buffer, Buffer, Buffer]
    const progressive = await sharp(blue).jpeg({ progressive: true }).toBuffer()
    pictures = [withThumbnail(red, white), withoutTables(green), progressive]
  })
  afterEach(async () => {
    await watched?.source.stop()
    await server?.close()
  })

  async function watch(
    form: string,
    habits: MjpegHabits = {},
    camera: Record<string, unknown> = {},
  ): Promise<WatchedSource> {
    const known = mjpegForms[form]
    if (known === undefined) throw new Error(form)
    server = served = await startMjpegServer(known, pictures, habits)
    watched = await WatchedSource.start(
      { url: `${server.base}/video.cgi`, sampleFps: 30, ...camera },
      { keepPixels: true },
    )
    return watched
  }

  /** Until so many were seen: never one twice. */
  async function expectColours(camera: WatchedSource, count: number): Promise<void> {
    const frames = await camera.untilFrames(count, 20_000)
    const seen = frames.map((frame) => colourOf(frame.pixels))
    expect(new Set(seen)).toEqual(new Set(colours))
    for (const [index, colour] of seen.entries()) if (index > 0) expect(colour).not.toBe(seen[index - 1])
    expect(new Set(frames.map(({ quality }) => quality))).toEqual(new Set(['ok']))
    expect(frames[0]?.source).toEqual({ widthPx: 64, heightPx: 48 })
  }

  it.each(Object.keys(mjpegForms))('R63: shows %s as it comes', async (form) => {
    const camera = await watch(form)
    await expectColours(camera, 7)
    const { frames } = camera
    const tookMs = (frames[6]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
    expect(tookMs).toBeGreaterThan(400)
    // By the server, which a busy machine holds up as well: it sends ten pictures a second.
    const sentBy = (arrivedMs = 0) => served?.sentMs.filter((sentAtMs) => sentAtMs <= arrivedMs).length ?? 0
    expect(sentBy(frames[6]?.arrivedMs) - sentBy(frames[0]?.arrivedMs)).toBeLessThan(6 + 20)
    expect(camera.source.status.state).toBe('live')
  })

  it.each(['HTTP/1.0', 'until closed'] as const)('R63: shows what comes as %s', async (as) => {
    await expectColours(await watch('no first boundary', { as }), 7)
  })

  it('R63: shows what is packed', async () => {
    const form = mjpegForms.plain
    server = await startHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': form?.type, 'content-encoding': 'gzip' })
      const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH })
      gzip.pipe(response)
      let sent = 0
      const send = () => gzip.write(form?.bytes([pictures[sent++ % 3] as Buffer]))
      send()
      const timer = setInterval(send, 100)
      response.once('close', () => clearInterval(timer))
    })
    watched = await WatchedSource.start({ url: server.base, sampleFps: 30 }, { keepPixels: true })
    await expectColours(watched, 7)
  })

  it.each([1, 2, 4])(
    'R63: goes on where the camera ends its answer after %i pictures',
    async (closesAfter) => {
      const camera = await watch('plain', { closesAfter, everyMs: 50 })
      await camera.untilFrames(12, 20_000)
      expect(camera.source.status.state).toBe('live')
      const at = camera.statuses.findIndex(({ state }) => state === 'live')
      expect(camera.statuses.slice(at).map(({ state }) => state)).toEqual(['live'])
    },
  )

  it('R63: the first picture of a slow camera is there at once', async () => {
    const camera = await watch('parts without length', { everyMs: 5_000 }, { stallTimeoutMs: 20_000 })
    await camera.untilFrames(1, 4_500)
  })

  it.each(['png', 'webp'] as const)('R63: shows a stream of %s', async (format) => {
    const stills = await Promise.all(colours.map((colour) => plainPicture(colour, format)))
    const type = 'multipart/x-mixed-replace; boundary=frame'
    const bytes = (all: readonly Buffer[]) =>
      Buffer.concat(
        all.flatMap((still) => [Buffer.from(`--frame\r\nContent-Type: image/${format}\r\n\r\n`), still]),
      )
    server = await startMjpegServer({ type, bytes }, stills)
    watched = await WatchedSource.start({ url: server.base, sampleFps: 30 }, { keepPixels: true })
    await expectColours(watched, 7)
  })

  it('R63: marks a picture that is cut, and no other, and goes on', async () => {
    const [red, green, blue] = pictures as [Buffer, Buffer, Buffer]
    const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const
    const whole = await sharp({
      create: { width: 64, height: 48, channels: 3, background: 'grey', noise },
    })
      .jpeg()
      .toBuffer()
    const form = mjpegForms['parts without length']
    if (form === undefined) throw new Error('no such form')
    // Closer together than a complaint counts for elsewhere. The end of what is cut is seen when the next one begins, which may not be sampled.
    const sent = [red, whole.subarray(0, whole.length / 2), blue, green]
    server = await startMjpegServer(form, sent, { everyMs: 80 })
    watched = await WatchedSource.start({ url: server.base, sampleFps: 30 }, { keepPixels: true })
    const frames = await watched.untilFrames(15, 20_000)
    const seen = frames.map(({ pixels, quality }) => `${isPlain(pixels) ? 'whole' : 'cut'} ${quality}`)
    expect(new Set(seen)).toEqual(new Set(['whole ok', 'cut suspect']))
  })

  it('logs in by digest, and keeps the login to itself', async () => {
    const guard = new DigestGuard('viewer', 'right-one', { algorithm: 'SHA-256', qop: 'auth' })
    server = await startMjpegServer(mjpegForms.plain as never, pictures, {
      admits: (request, response) => guard.admits(request, response),
    })
    const url = `${server.base.replace('//', '//viewer:right-one@')}/live`
    watched = await WatchedSource.start({ url, sampleFps: 30 }, { keepPixels: true })
    await expectColours(watched, 7)
    await watched.source.stop()
    watched = await WatchedSource.start({ url: url.replace('right', 'wrong') })
    const { reason, retryInMs } = await watched.untilState('backoff')
    expect(reason).toBe('credentials refused (401)')
    expect(retryInMs).toBeGreaterThan(0)
    expect(watched.logLines.join('')).not.toContain('wrong-one')
  })

  it.each([
    ['parts of video', 'video/h264', 'the camera sends parts of video/h264, not pictures'],
    ['pictures without end', '', 'a picture is larger than 16 MiB, the most that is read'],
  ])('R63: names what it cannot show: %s', async (_, type, reason) => {
    server = await startHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=frame' })
      if (type === '') response.write((pictures[0] as Buffer).subarray(0, -2))
      const part =
        type === ''
          ? Buffer.alloc(1024 * 1024)
          : Buffer.from(`--frame\r\nContent-Type: ${type}\r\nContent-Length: 4\r\n\r\nabcd\r\n`)
      const send = () => {
        while (response.write(part) && !response.destroyed) {
          // As much as it takes.
        }
      }
      response.on('drain', send)
      send()
    })
    watched = await WatchedSource.start({ url: server.base })
    expect((await watched.untilState('backoff', 20_000)).reason).toBe(reason)
  })
})

/** Whether a line through the upper half of the picture has one colour. */
function isPlain(rgbHwc: Uint8Array | null): boolean {
  if (rgbHwc === null) return false
  const side = Math.sqrt(rgbHwc.length / 3)
  const line = rgbHwc.subarray(
    Math.floor(0.35 * side) * side * 3,
    (Math.floor(0.35 * side) * side + side) * 3,
  )
  return line.every((value, at) => Math.abs(value - (line[at % 3] ?? 0)) < 20)
}
