import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ownPictureOf } from '../../src/sources/own-picture.js'
import { dockClip, rtspCameras } from '../support/demo-cameras.js'
import { startHttpServer } from '../support/http-server.js'
import { mjpegForms } from '../support/mjpeg-forms.js'
import { startMjpegServer } from '../support/mjpeg-server.js'
import { codedStream, PacedRtspServer } from '../support/paced-rtsp.js'
import { plainPicture } from '../support/still-pictures.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'
import { WatchedSource } from '../support/watched-source.js'

const soon = () => AbortSignal.timeout(30_000)

async function watch(camera: Readonly<{ url: string } & Record<string, unknown>>, mediaRoot = '/') {
  const watched = await WatchedSource.start(camera, { mediaRoot, keepPixels: true })
  onTestFinished(() => watched.source.stop())
  return watched
}

/** The picture that is at hand, once there is one. */
async function sentBy(watched: WatchedSource) {
  return until('a picture as it was sent', () => watched.source.sentPicture?.(), 30_000)
}

async function ownOf(watched: WatchedSource) {
  const picture = await ownPictureOf(await sentBy(watched), watched.camera, soon())
  const { width, height } = await sharp(picture!.jpeg).metadata()
  expect({ widthPx: width, heightPx: height }).toEqual(picture!.size)
  return picture!
}

/** How far two pictures are apart, 0..255 a colour on average, at a small size. */
async function apart(one: Uint8Array | string, other: Uint8Array): Promise<number> {
  const small = (picture: Uint8Array | string) =>
    sharp(picture).removeAlpha().resize(64, 36, { fit: 'fill' }).raw().toBuffer()
  const [a, b] = await Promise.all([small(one), small(other)])
  return a.reduce((sum, value, at) => sum + Math.abs(value - b[at]!), 0) / a.length
}

describe('the picture that a camera sent', () => {
  it('R104: is its newest key frame, of RTSP, without another session at the camera', async () => {
    const rtsp = await rtspCameras(1)
    onTestFinished(() => rtsp.stop())
    const watched = await watch({ url: rtsp.url('/cam1') })
    const { size, jpeg } = await ownOf(watched)
    expect(size).toEqual({ widthPx: 1_280, heightPx: 720 })
    const frame = join(tempDir(), 'first.png')
    execFileSync('ffmpeg', ['-v', 'error', '-i', dockClip, '-frames:v', '1', frame])
    // The clip shows one place, in which little moves.
    expect(await apart(frame, jpeg)).toBeLessThan(20)
    const first = await sentBy(watched)
    await until(
      'the next key frame',
      () => watched.source.sentPicture?.()?.capturedAtMs !== first.capturedAtMs,
      30_000,
    )
  })

  it.each(['h264', 'h265', 'mjpeg'] as const)('is a whole one of %s over RTSP', async (codec) => {
    const stream = await codedStream(join(tempDir(), `clip.${codec}`), codec)
    const server = await PacedRtspServer.start(stream, 100)
    onTestFinished(() => server.stop())
    const watched = await watch({ url: server.url })
    await watched.untilFrames(1, 30_000)
    const { size } = await ownOf(watched)
    expect(size).toEqual(watched.frames[0]?.source)
  })

  it('is the very JPEG of pictures over HTTP, of snapshots and of folders', async () => {
    const red = await plainPicture('red')
    const mjpeg = await startMjpegServer(Object.values(mjpegForms)[0]!, [red])
    onTestFinished(() => mjpeg.close())
    const server = await startHttpServer((_, response) => response.end(red))
    onTestFinished(() => server.close())
    for (const url of [`${mjpeg.base}/stream.mjpg`, `${server.base}/snap.jpg`]) {
      const watched = await watch({ url })
      const sent = await sentBy(watched)
      expect(sent, url).toMatchObject({ kind: 'still' })
      expect((await ownOf(watched)).size).toEqual({ widthPx: 64, heightPx: 48 })
    }
  })

  it('is the picture at its place in a file, however often that was played', async () => {
    const watched = await watch({ url: dockClip, sampleFps: 5 })
    await watched.untilFrames(8, 60_000)
    const sent = await sentBy(watched)
    expect(sent).toMatchObject({ kind: 'file', path: dockClip })
    if (sent.kind === 'file') expect(sent.atS).toBeGreaterThan(0.5)
    expect((await ownOf(watched)).size).toEqual({ widthPx: 1_280, heightPx: 720 })
  })

  it('is none over UDP, whose packets go past us', async () => {
    const rtsp = await rtspCameras(1)
    onTestFinished(() => rtsp.stop())
    const watched = await watch({ url: rtsp.url('/cam1'), transport: 'udp' })
    await watched.untilFrames(5, 60_000)
    expect(watched.source.sentPicture?.()).toBeUndefined()
  })
})
