import { createServer } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { CameraDirectory } from '../../../src/cameras/camera-directory.js'
import { CameraStore } from '../../../src/cameras/camera-store.js'
import { cameraSchema } from '../../../src/config/camera.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { lookAtCameras } from '../../../src/processes/control/look-at-cameras.js'
import { tempDir } from '../../support/temp-dir.js'
import { makeClip } from '../../support/video-clips.js'

async function directoryOf(mediaRoot: string, cameras: readonly object[]): Promise<CameraDirectory> {
  const directory = new CameraDirectory({
    store: new CameraStore(mediaRoot),
    metrics: createServiceMetrics(),
    engines: 1,
    mediaRoot,
    cameraNetworks: { allow: [], deny: [] },
    loopbackClosed: false,
  })
  await directory.load(cameras.map((camera) => cameraSchema.parse(camera)))
  return directory
}

it('tells what is analysed of the pictures of cameras that are switched on', async () => {
  const dir = tempDir()
  await makeClip(`${dir}/wide.mp4`, { widthPx: 320, heightPx: 180, seconds: 1 })
  await makeClip(`${dir}/old.mp4`, { widthPx: 320, heightPx: 240, seconds: 1 })
  const directory = await directoryOf(dir, [
    { id: 'wide', url: 'wide.mp4' },
    { id: 'half', url: 'old.mp4', region: { x: 0, y: 0, width: 1, height: 0.5 } },
    { id: 'off', url: 'old.mp4', enabled: false },
    { id: 'pushed', url: 'push:' },
    { id: 'gone', url: 'rtsp://127.0.0.1:1/x' },
  ])
  const { pictures, cameras } = await lookAtCameras(directory, 20_000)
  expect(cameras).toBe(4)
  expect(pictures.toSorted((a, b) => b.heightPx - a.heightPx)).toEqual([
    { widthPx: 320, heightPx: 180 },
    { widthPx: 320, heightPx: 120 },
  ])
})

it('R36: does not wait for a camera that does not answer, and counts what it knows by then', async () => {
  const dir = tempDir()
  await makeClip(`${dir}/wide.mp4`, { widthPx: 320, heightPx: 180, seconds: 1 })
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const directory = await directoryOf(dir, [
    { id: 'silent', url: `rtsp://127.0.0.1:${port}/x` },
    { id: 'wide', url: 'wide.mp4' },
  ])
  const beganMs = performance.now()
  // On a busy machine the decoder of the other one takes longer than the start would wait.
  const shapes = await lookAtCameras(directory, 6_000)
  expect(performance.now() - beganMs).toBeLessThan(10_000)
  expect(shapes).toEqual({ pictures: [{ widthPx: 320, heightPx: 180 }], cameras: 2 })
})

it('opens nothing where no camera has pictures to fetch', async () => {
  const directory = await directoryOf(tempDir(), [{ id: 'pushed', url: 'push:' }])
  expect(await lookAtCameras(directory)).toEqual({ pictures: [], cameras: 1 })
})
