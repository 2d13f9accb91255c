import { expect, it } from 'vitest'
import { checkKeyFrames } from '../../../src/cli/checks/key-frames-check.js'
import { cameraSchema } from '../../../src/config/camera.js'

const cameraOf = (id: string, settings: object) => cameraSchema.parse({ id, ...settings })

it('tells what key frames of cameras by RTSP over TCP may take, and of no others', () => {
  const rtsp = { url: 'rtsp://192.0.2.1/main' }
  const cameras = [
    cameraOf('plain', rtsp),
    cameraOf('fewer', { ...rtsp, decode: 'keyframes' }),
    cameraOf('secret', { url: 'rtsps://192.0.2.1/main', transport: 'udp' }),
    cameraOf('off', { ...rtsp, enabled: false }),
    cameraOf('udp', { ...rtsp, transport: 'udp' }),
    cameraOf('sub', { ...rtsp, analyseUrl: 'rtsp://192.0.2.1/sub' }),
    cameraOf('other', { ...rtsp, videoTrack: 2 }),
    cameraOf('web', { url: 'http://192.0.2.1/stream' }),
    cameraOf('push', { url: 'push:' }),
  ]
  const [finding, ...more] = checkKeyFrames({ cameras })
  expect(more).toEqual([])
  expect(finding).toMatchObject({ subject: 'key frames', state: 'ok' })
  expect(finding?.detail).toContain('3 x 8 MiB = 24 MiB')
  expect(checkKeyFrames({ cameras: cameras.slice(3) })).toEqual([])
})
