import sharp from 'sharp'
import { afterEach, describe, expect, it } from 'vitest'
import { isPushSource } from '../../src/sources/create-source.js'
import type { PushSource } from '../../src/sources/push-source.js'
import { damagedStills, wholeStills } from '../support/damaged-stills.js'
import { mostHeldMs } from '../support/loop-held.js'
import { pictureBomb } from '../support/picture-bomb.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

const picture = (widthPx: number, heightPx: number, background = 'red') =>
  sharp({ create: { width: widthPx, height: heightPx, channels: 3, background } })

describe('a camera that pushes', () => {
  let watched: WatchedSource | undefined
  afterEach(async () => {
    await watched?.source.stop()
  })

  async function open(camera: Record<string, unknown> = {}, options: WatchOptions = {}) {
    const camera_ = await WatchedSource.start({ url: 'push:', ...camera }, options)
    watched = camera_
    if (!isPushSource(camera_.source)) throw new Error('no push source')
    const source: PushSource = camera_.source
    return { camera: camera_, source }
  }

  it('makes a frame of each JPEG and PNG, in order', async () => {
    const { camera, source } = await open({}, { keepPixels: true })
    expect(camera.source.status).toMatchObject({
      state: 'connecting',
      reason: 'waiting for the first picture',
    })
    const pictures = [
      await picture(320, 180).jpeg().toBuffer(),
      await picture(64, 128, 'blue').png().toBuffer(),
    ]
    expect(await Promise.all(pictures.map((image) => source.push(image)))).toEqual([{ seq: 1 }, { seq: 2 }])
    for (const { ptsMs } of camera.frames) expect(ptsMs).toBe(Number(ptsMs.toFixed(3)))
    expect(camera.frames[0]?.ptsMs).toBe(0)
    expect(camera.frames.map((frame) => frame.source)).toEqual([
      { widthPx: 320, heightPx: 180 },
      { widthPx: 64, heightPx: 128 },
    ])
    expect(camera.frames[0]?.letterbox).toEqual({ scale: 0.5, padXPx: 0, padYPx: 35 })
    const centre = (160 * 80 + 80) * 3
    expect([...(camera.frames[1]?.pixels?.subarray(centre, centre + 3) ?? [])]).toEqual([0, 0, 255])
    expect(camera.source.status.state).toBe('live')
  })

  it('turns a picture as its camera says', async () => {
    const { camera, source } = await open()
    await source.push(await picture(320, 180).withMetadata({ orientation: 6 }).jpeg().toBuffer())
    expect(camera.frames[0]?.source).toEqual({ widthPx: 180, heightPx: 320 })
  })

  it('takes grey, transparent and deep pictures', async () => {
    const { camera, source } = await open({}, { keepPixels: true })
    await source.push(await picture(64, 64, 'white').greyscale().png().toBuffer())
    const clear = {
      create: { width: 64, height: 64, channels: 4 as const, background: { r: 0, g: 0, b: 0, alpha: 0 } },
    }
    await source.push(await sharp(clear).png().toBuffer())
    await source.push(await picture(64, 64, 'white').toColourspace('rgb16').png().toBuffer())
    const centres = camera.frames.map((frame) => frame.pixels?.[(160 * 80 + 80) * 3])
    expect(centres).toEqual([255, 114, 255])
  })

  it('is stalled when no picture comes for a while, and live with the next', async () => {
    const { camera, source } = await open({ stallTimeoutMs: 500 })
    const image = await picture(32, 32).png().toBuffer()
    await source.push(image)
    await camera.untilState('stalled', 2_000)
    await source.push(image)
    expect(camera.source.status.state).toBe('live')
  })

  const jpeg = picture(320, 180).jpeg().toBuffer()
  it.each([
    ['nothing', async () => Buffer.alloc(0)],
    ['text', async () => Buffer.from('<script>alert(1)</script>')],
    ['a JPEG that ends before its first pixel', async () => (await jpeg).subarray(0, 200)],
    ['a PNG that ends in the middle', async () => pictureBomb(4_000, 4_000).subarray(0, 90)],
    [
      'an SVG that reads a file',
      async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><image href="/etc/passwd"/></svg>'),
    ],
    ['a GIF', async () => picture(8, 8).gif().toBuffer()],
    ['a WebP', async () => picture(8, 8).webp().toBuffer()],
    ['a TIFF', async () => picture(8, 8).tiff().toBuffer()],
  ])('refuses %s', async (_, make) => {
    const { camera, source } = await open()
    await expect(source.push(await make())).rejects.toMatchObject({ code: 'GANTRY_IMAGE_INVALID' })
    expect(camera.frames).toEqual([])
  })

  it.each(wholeStills)('R60: takes %s as it is', async (_, make) => {
    const { camera, source } = await open()
    await source.push(await make())
    expect(camera.frames.map(({ quality }) => quality)).toEqual(['ok'])
    expect(camera.warnings).toEqual([])
  })

  it.each(damagedStills)('R60: shows %s as suspect, and says why', async (_, make, why) => {
    const { camera, source } = await open()
    expect(await source.push(await make())).toEqual({ seq: 1 })
    expect(camera.frames.map(({ quality }) => quality)).toEqual(['suspect'])
    expect(camera.warnings).toMatchObject([
      { kind: 'decode_error', detail: expect.stringMatching(why) as string },
    ])
  })

  it('R60: looks into a large picture without holding up the others', async () => {
    const { camera, source } = await open()
    const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const
    const large = await sharp({
      create: { width: 2_400, height: 1_600, channels: 3, background: 'black', noise },
    })
      .jpeg({ quality: 95 })
      .toBuffer()
    expect(large.length).toBeGreaterThan(2e6)
    const { heldMs } = await mostHeldMs(() => source.push(large))
    expect(heldMs).toBeLessThan(100)
    expect(camera.frames[0]?.quality).toBe('ok')
  }, 60_000)

  it('refuses a small file that holds a huge picture, at no cost', async () => {
    const { camera, source } = await open()
    const small = pictureBomb(20_000, 20_000)
    expect(small.length).toBeLessThan(100_000)
    const before = process.memoryUsage().rss
    await expect(source.push(small)).rejects.toMatchObject({ code: 'GANTRY_TOO_LARGE' })
    expect(process.memoryUsage().rss - before).toBeLessThan(50e6)
    expect(camera.pool.idle).toBe(0)
  })

  it('decodes the largest picture that is allowed within 150 MB', async () => {
    const { camera, source } = await open()
    const large = pictureBomb(8_192, 8_192)
    const before = process.memoryUsage().rss
    await source.push(large)
    expect(camera.frames[0]?.source).toEqual({ widthPx: 8_192, heightPx: 8_192 })
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6)
  })

  it('refuses more pictures than may wait, and takes the next after that', async () => {
    const { source } = await open()
    const image = await picture(640, 480).png().toBuffer()
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => source.push(image)))
    expect(results.map((result) => result.status)).toEqual([
      ...['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'],
      ...['rejected', 'rejected', 'rejected', 'rejected'],
    ])
    expect(results[7]).toMatchObject({ reason: { code: 'GANTRY_QUEUE_FULL', retryable: true } })
    await source.push(image)
  })

  it('R20: makes frames of the pictures it has taken before it stops, and takes no more', async () => {
    const { camera, source } = await open()
    const image = await picture(640, 480).png().toBuffer()
    const taken = [source.push(image), source.push(image)]
    const stopped = camera.source.stop()
    await expect(source.push(image)).rejects.toMatchObject({ code: 'GANTRY_QUEUE_FULL' })
    expect(await Promise.all(taken)).toEqual([{ seq: 1 }, { seq: 2 }])
    await stopped
    expect(camera.frames.map(({ seq }) => seq)).toEqual([1, 2])
  })
})
