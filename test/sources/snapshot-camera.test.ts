import type { IncomingMessage, ServerResponse } from 'node:http'
import sharp from 'sharp'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DigestGuard } from '../support/digest-server.js'
import { startHttpServer, type TestServer } from '../support/http-server.js'
import { colourOf, plainPicture } from '../support/still-pictures.js'
import { tlsFront } from '../support/tls-front.js'
import { until } from '../support/until.js'
import { WatchedSource, type WatchOptions } from '../support/watched-source.js'

const colours = ['red', 'lime', 'blue']

type Answer = (request: IncomingMessage, response: ServerResponse, picture: Buffer, count: number) => void

describe('a snapshot URL', () => {
  let pictures: readonly Buffer[]
  let watched: WatchedSource | undefined
  let server: TestServer | undefined
  let asked = 0

  beforeAll(async () => {
    pictures = await Promise.all(colours.map((colour) => plainPicture(colour)))
  })
  afterEach(async () => {
    await watched?.source.stop()
    await server?.close()
  })

  async function watch(
    answer: Answer,
    camera: Record<string, unknown> = {},
    options: WatchOptions = {},
  ): Promise<WatchedSource> {
    asked = 0
    server = await startHttpServer((request, response) => {
      const picture = pictures[asked % pictures.length] as Buffer
      asked += 1
      answer(request, response, picture, asked)
    })
    const login = camera.login === undefined ? '' : `${camera.login as string}@`
    const { login: _, ...settings } = camera
    watched = await WatchedSource.start(
      { url: `${server.base.replace('//', `//${login}`)}/snap?ch=1`, sampleFps: 10, ...settings },
      { keepPixels: true, ...options },
    )
    return watched
  }

  const plain: Answer = (_request, response, picture) =>
    response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': picture.length }).end(picture)

  it('R64: is asked at the sampling rate over one connection, and every answer is a frame', async () => {
    const camera = await watch(plain)
    const frames = await camera.untilFrames(12)
    expect(frames.slice(0, 3).map((frame) => colourOf(frame.pixels))).toEqual(colours)
    expect(frames[0]).toMatchObject({ source: { widthPx: 64, heightPx: 48 }, quality: 'ok' })
    const tookMs = (frames[11]?.arrivedMs ?? 0) - (frames[1]?.arrivedMs ?? 0)
    expect(tookMs).toBeGreaterThan(900)
    expect(server?.connections().all).toBe(1)
    expect(camera.source.status).toMatchObject({
      state: 'live',
      reason: '',
      attempts: 1,
      decode: { reason: 'snapshot, polled at 10 fps', polledFps: 10, by: 'software' },
    })
    await camera.source.stop()
    await until('the connection is closed', () => server?.connections().open === 0)
  })

  it.each<readonly [string, Answer]>([
    [
      'in chunks',
      (_, response, picture) => response.writeHead(200, { 'content-type': 'image/jpeg' }).end(picture),
    ],
    [
      'without a type',
      (_, response, picture) => response.writeHead(200, { 'content-length': picture.length }).end(picture),
    ],
    [
      'as octets, closing the connection',
      (_, response, picture) =>
        response
          .writeHead(200, { 'content-type': 'application/octet-stream', connection: 'close' })
          .end(picture),
    ],
    [
      'with bytes behind it',
      (_, response, picture) => {
        const padded = Buffer.concat([picture, Buffer.alloc(100)])
        response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': padded.length }).end(padded)
      },
    ],
    [
      'without an end of the answer',
      (_, response, picture) => response.writeHead(200, { 'content-type': 'image/jpeg' }).write(picture),
    ],
    [
      'behind a redirect',
      (request, response, picture) => {
        if (request.url === '/beside') response.writeHead(200, { 'content-type': 'image/jpeg' }).end(picture)
        else response.writeHead(302, { location: '/beside' }).end()
      },
    ],
    [
      'as a multipart of one',
      (_, response, picture) =>
        response
          .writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=b' })
          .end(
            Buffer.concat([
              Buffer.from('--b\r\nContent-Type: image/jpeg\r\n\r\n'),
              picture,
              Buffer.from('\r\n--b--\r\n'),
            ]),
          ),
    ],
  ])('R64: is known for one when it answers %s', async (_, answer) => {
    const camera = await watch(answer, { stallTimeoutMs: 20_000 })
    const frames = await camera.untilFrames(3, 20_000)
    for (const frame of frames) expect(colours).toContain(colourOf(frame.pixels))
    expect(camera.source.status.state).toBe('live')
  })

  it.each(['png', 'webp'] as const)('R64: may be a %s', async (format) => {
    const still = await plainPicture('lime', format)
    const camera = await watch((_, response) =>
      response.writeHead(200, { 'content-type': `image/${format}` }).end(still),
    )
    const [frame] = await camera.untilFrames(1)
    expect(colourOf(frame?.pixels ?? null)).toBe('lime')
  })

  it('R64: is asked over TLS, whoever vouches for the camera', async () => {
    const origin = await startHttpServer((request, response) =>
      plain(request, response, pictures[0] as Buffer, 1),
    )
    const { port } = await tlsFront(origin.port)
    watched = await WatchedSource.start({ url: `https://127.0.0.1:${port}/snap`, sampleFps: 10 })
    await watched.untilFrames(3)
    expect(origin.connections().all).toBe(1)
    await watched.source.stop()
    await origin.close()
  })

  it('R64: is never asked twice at once, and as often as it answers', async () => {
    let open = 0
    let most = 0
    const camera = await watch((_request, response, picture) => {
      open += 1
      most = Math.max(most, open)
      setTimeout(() => {
        open -= 1
        response.writeHead(200, { 'content-type': 'image/jpeg' }).end(picture)
      }, 250)
    })
    const frames = await camera.untilFrames(4)
    expect(most).toBe(1)
    const tookMs = (frames[3]?.arrivedMs ?? 0) - (frames[0]?.arrivedMs ?? 0)
    expect(tookMs).toBeGreaterThan(700)
    expect(tookMs).toBeLessThan(1_800)
  })

  it.each(['MD5', 'SHA-256'] as const)('R64: logs in by digest, once: %s', async (algorithm) => {
    const guard = new DigestGuard('viewer', 'a-secret', { algorithm, qop: 'auth' })
    const camera = await watch(
      (request, response, picture) => guard.admits(request, response) && response.end(picture),
      { login: 'viewer:a-secret' },
    )
    await camera.untilFrames(5)
    expect(guard.refused).toBe(1)
    expect(JSON.stringify([camera.statuses, camera.logLines])).not.toContain('a-secret')
  })

  it.each<readonly [string, Answer, string]>([
    [
      'refuses the login',
      (_, response) => response.writeHead(401).end(),
      'the camera refuses (401) and names no way to log in: its account may be locked for a while',
    ],
    ['is forbidden', (_, response) => response.writeHead(403).end(), 'access forbidden (403)'],
    ['is not there', (_, response) => response.writeHead(404).end(), 'stream not found on the camera (404)'],
    ['fails', (_, response) => response.writeHead(500).end(), 'the server answered with an error (5xx)'],
    [
      'answers with a page',
      (_, response) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
      'the camera answers with text (text/html), not with pictures: ask for the URL of its picture or stream',
    ],
    [
      'answers with words as image/jpeg',
      (_, response) =>
        response.writeHead(200, { 'content-type': 'image/jpeg' }).end('Error: no such channel'),
      'the camera answers with text (image/jpeg), not with pictures: ask for the URL of its picture or stream',
    ],
    [
      'answers with nothing',
      (_, response) => response.writeHead(200, { 'content-length': 0 }).end(),
      'the camera answers with nothing, not with a picture (JPEG, PNG or WebP)',
    ],
    [
      'gives a GIF',
      (_, response) =>
        void plainPicture('red', 'gif').then((gif) =>
          response.writeHead(200, { 'content-type': 'image/gif' }).end(gif),
        ),
      'the camera answers with image/gif, not with a picture (JPEG, PNG or WebP)',
    ],
    [
      'gives a picture larger than any that is read',
      (_, response, picture) =>
        response
          .writeHead(200, { 'content-type': 'image/jpeg' })
          .end(Buffer.concat([picture.subarray(0, -2), Buffer.alloc(17 * 1024 * 1024)])),
      'a picture is larger than 16 MiB, the most that is read',
    ],
    [
      'leads to a closed address',
      (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
      'address not allowed: 169.254.169.254 is a metadata service of a cloud (see cameraNetworks)',
    ],
  ])('R64: says why it gives no picture: it %s', async (_, answer, reason) => {
    const camera = await watch(answer)
    expect((await camera.untilState('backoff')).reason).toBe(reason)
    expect(camera.frames).toEqual([])
  })

  it('R64: waits as long as it is asked to', async () => {
    const camera = await watch((_, response) => response.writeHead(503, { 'retry-after': '7' }).end())
    const { retryInMs = 0, reason } = await camera.untilState('backoff')
    expect(reason).toBe('the camera has no session left (busy)')
    expect(retryInMs).toBeGreaterThanOrEqual(7_000)
  })

  it('R64: shows a picture that is cut in the middle as suspect, and the next one as it is', async () => {
    const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const
    const large = await sharp({ create: { width: 64, height: 48, channels: 3, background: 'grey', noise } })
      .jpeg()
      .toBuffer()
    const half = large.subarray(0, large.length / 2)
    const camera = await watch((request, response, picture, count) => {
      if (count % 4 === 2) plain(request, response, half, count)
      else if (count % 4 === 0) {
        response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': large.length })
        response.write(half, () => response.destroy())
      } else plain(request, response, picture, count)
    })
    const frames = await camera.untilFrames(9, 20_000)
    const seen = frames.map(
      ({ pixels, quality }) => `${colours.includes(colourOf(pixels)) ? 'whole' : 'cut'} ${quality}`,
    )
    expect(new Set(seen)).toEqual(new Set(['whole ok', 'cut suspect']))
    expect(seen.slice(0, 4)).toEqual(['whole ok', 'cut suspect', 'whole ok', 'cut suspect'])
    expect(camera.warnings.map(({ kind }) => kind)).toContain('decode_error')
    expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
  })

  it('R64: goes on over a single bad answer, which is a warning', async () => {
    const camera = await watch((request, response, picture, count) => {
      if (count === 3) response.writeHead(500).end('<html>oops</html>')
      else if (count === 5) {
        response.writeHead(200, { 'content-length': picture.length })
        response.write(picture.subarray(0, 100), () => response.destroy())
      } else if (count === 7) request.socket.destroy()
      else plain(request, response, picture, count)
    })
    await camera.untilFrames(8)
    expect(camera.statuses.filter(({ state }) => state === 'live')).toHaveLength(1)
    expect(camera.warnings.map(({ kind }) => kind)).toContain('poll_failed')
    expect(camera.warnings[0]?.detail).toBe('the server answered with an error (5xx)')
  })

  it('R64: is left with the reason once no picture has come for the stall time', async () => {
    const camera = await watch(
      (request, response, picture, count) => {
        if (count > 2) response.writeHead(500).end()
        else plain(request, response, picture, count)
      },
      { stallTimeoutMs: 600 },
    )
    expect((await camera.untilState('backoff')).reason).toBe('the server answered with an error (5xx)')
  })

  it('R64: is stalled when it does not answer', async () => {
    const camera = await watch(
      (request, response, picture, count) => {
        if (count < 3) plain(request, response, picture, count)
      },
      { stallTimeoutMs: 500 },
    )
    expect((await camera.untilState('stalled')).reason).toMatch(/^no picture for /)
    await camera.untilState('backoff')
  })

  it('R64: every camera of an engine has its own moment', async () => {
    const camera = await watch(plain, { sampleFps: 5 }, { samplingPhase: 0.25 })
    const frames = await camera.untilFrames(6)
    // 50 ms behind a multiple of 200 ms, and what an answer takes.
    const phases = frames.slice(1).map(({ capturedAtMs }) => (capturedAtMs - 50) % 200)
    expect(Math.min(...phases)).toBeLessThan(60)
  })

  it('R64: may become a stream, and a stream a snapshot', async () => {
    let isStream = false
    const camera = await watch((request, response, picture, count) => {
      if (!isStream) return plain(request, response, picture, count)
      response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=b' })
      const send = () =>
        response.write(
          Buffer.concat([
            Buffer.from('--b\r\nContent-Type: image/jpeg\r\n\r\n'),
            picture,
            Buffer.from('\r\n'),
          ]),
        )
      const timer = setInterval(send, 50)
      response.once('close', () => clearInterval(timer))
      return undefined
    })
    await camera.untilFrames(2)
    isStream = true
    await camera.until(
      'a stream',
      () => camera.source.status.decode?.polledFps === undefined && camera.source.status.state === 'live',
      20_000,
    )
  })
})
