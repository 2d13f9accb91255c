import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { CameraDirectory } from '../../../src/cameras/camera-directory.js'
import { CameraStore } from '../../../src/cameras/camera-store.js'
import { newCameraSchema } from '../../../src/config/camera.js'
import { cameraPreviewRequestSchema } from '../../../src/config/camera-preview.js'
import { cameraPreviewSchema, type CameraPreview } from '../../../src/api/preview-schema.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { CameraPreviews } from '../../../src/processes/control/camera-previews.js'
import type { LoopingRtspServer } from '../../../src/tools/rtsp-server/looping-rtsp-server.js'
import { rtspCameras } from '../../support/demo-cameras.js'
import { DigestGuard } from '../../support/digest-server.js'
import { startHttpServer } from '../../support/http-server.js'
import { silentLog } from '../../support/silent-log.js'
import { plainPicture } from '../../support/still-pictures.js'
import { tempDir } from '../../support/temp-dir.js'

const never = new AbortController().signal

function setting(loopbackClosed = false) {
  const mediaRoot = tempDir()
  const directory = new CameraDirectory({
    store: new CameraStore(mediaRoot),
    metrics: createServiceMetrics(),
    engines: 1,
    mediaRoot,
    cameraNetworks: { allow: [], deny: [] },
    loopbackClosed,
  })
  const previews = new CameraPreviews({ ...directory.deps, directory, log: silentLog() })
  onTestFinished(() => previews.close())
  const look = async (asked: object, signal = never): Promise<CameraPreview> =>
    cameraPreviewSchema.parse(await previews.look(cameraPreviewRequestSchema.parse(asked), signal))
  return { directory, previews, look }
}

/** The colour in the middle of a picture. */
async function middleOf({ picture }: CameraPreview): Promise<number[]> {
  const image = sharp(Buffer.from(picture!.base64, 'base64'))
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true })
  expect([info.width, info.height]).toEqual([picture!.widthPx, picture!.heightPx])
  const at = (Math.floor(info.height / 2) * info.width + Math.floor(info.width / 2)) * info.channels
  return [...data.subarray(at, at + 3)]
}

describe('a preview of a camera', () => {
  let rtsp: LoopingRtspServer
  beforeAll(async () => {
    rtsp = await rtspCameras(1)
  })
  afterAll(() => rtsp.stop())

  it('R106: shows a camera that is not added yet: picture, size, codec, rate and time', async () => {
    const { directory, look } = setting()
    const region = { x: 0.5, y: 0.5, width: 0.5, height: 0.5 }
    const seen = await look({ url: rtsp.url('/cam1'), enabled: false, region })
    expect(seen).toMatchObject({ state: 'ok', hint: '', codec: 'h264' })
    expect(seen.detail).toMatch(/^1280x720, first picture after \d+ ms$/)
    // Whole, whatever its region is: that is drawn into it.
    expect(seen.source).toEqual({ widthPx: 1_280, heightPx: 720 })
    expect(seen.picture).toMatchObject({ widthPx: 1_280, heightPx: 720 })
    expect(seen.fps).toBeGreaterThan(1)
    await middleOf(seen)
    expect(directory.size).toBe(0)
  })

  it('says why there is no picture, without a secret', async () => {
    const { look } = setting()
    const login = { username: 'canary-user', password: 'canary-password' }
    const seen = await look({ url: 'rtsp://127.0.0.1:1/x', ...login })
    expect(seen).toMatchObject({ state: 'failed', picture: null, source: null, firstPictureMs: null })
    expect(seen.detail).toMatch(/refused/)
    expect(seen.hint).toMatch(/camera-not-live/)
    expect(JSON.stringify(seen)).not.toContain('canary')
  })

  it('R107: of a camera that is there takes its login along, and its mask for nothing', async () => {
    const guard = new DigestGuard('viewer', 'p@ss:w/rd')
    const picture = await plainPicture('red')
    const server = await startHttpServer((request, response) => {
      if (guard.admits(request, response)) response.end(picture)
    })
    onTestFinished(() => server.close())
    const { directory, look } = setting()
    const login = { username: 'viewer', password: 'p@ss:w/rd' }
    await directory.add(newCameraSchema.parse({ id: 'gate', url: `${server.base}/snap`, ...login }))
    for (const changes of [{}, { sampleFps: 2 }, { username: '***', password: '***' }]) {
      const seen = await look({ id: 'gate', ...changes })
      expect(seen, JSON.stringify(changes)).toMatchObject({ state: 'ok', codec: null })
      const [red = 0, green = 0] = await middleOf(seen)
      expect(red - green).toBeGreaterThan(100)
    }
    const without = await look({ id: 'gate', username: null, password: null })
    expect(without).toMatchObject({ state: 'failed' })
    expect(without.detail).toMatch(/login|password|401/i)
    expect(directory.get('gate').config).toMatchObject({ ...login, sampleFps: 5 })
  })

  it('opens nothing that may not be added', async () => {
    const { look } = setting(true)
    for (const url of [
      'rtsp://127.0.0.1:8554/x',
      'http://169.254.169.254/latest',
      'gopher://h/x',
      '/etc/passwd',
    ])
      await expect(look({ url }), url).rejects.toMatchObject({ code: 'GANTRY_CAMERA_URL' })
    await expect(look({ url: 'push:', decode: 'keyframes' })).rejects.toMatchObject({
      code: 'GANTRY_CAMERA_SETTING',
    })
  })

  it('ends with whoever asked, and is refused while as many are under way as may be', async () => {
    let open = 0
    const server = await startHttpServer((request) => {
      open += 1
      request.socket.once('close', () => (open -= 1))
    })
    onTestFinished(() => server.close())
    const { look } = setting()
    const gone = new AbortController()
    const url = `${server.base}/never.mjpg`
    const looks = [1, 2, 3].map(() => look({ url }, gone.signal))
    await expect.poll(() => open, { timeout: 30_000 }).toBe(3)
    await expect(look({ url })).rejects.toMatchObject({ code: 'GANTRY_RATE_LIMITED' })
    gone.abort()
    for (const seen of await Promise.all(looks)) expect(seen.state).toBe('failed')
    await expect.poll(() => open, { timeout: 30_000 }).toBe(0)
    // There is room again.
    await expect(look({ url: 'rtsp://127.0.0.1:1/x' })).resolves.toMatchObject({ state: 'failed' })
  })
})
