import sharp from 'sharp'
import { expect, it } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { dockClip } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'

const login = 'admin:c4nary%40x'
const credentials = { user: 'admin', password: 'c4nary@x', scheme: 'digest' } as const

it('S13: analyses the sub-stream, opens the main one for snapshots alone, and changes both while it runs', async () => {
  const folder = await tempFolder()
  const rtsp = new LoopingRtspServer()
  await rtsp.start()
  for (const [name, scale] of [
    ['sub.mp4', 'scale=640:360'],
    ['cif.mp4', 'scale=352:288'],
  ] as const)
    await ffmpegRun(...['-t', '4', '-i', dockClip, '-vf', scale, '-g', '25', '-bf', '0'], folder.file(name))
  const main = await rtsp.addStream('/main', dockClip, { credentials })
  await rtsp.addStream('/sub', folder.file('sub.mp4'), { credentials })
  await rtsp.addStream('/cif', folder.file('cif.mp4'))
  const camera = {
    id: 'dock',
    ...{ url: rtsp.url('/main', login), analyseUrl: rtsp.url('/sub', login), sampleFps: 2 },
  }
  const service = await TestService.start({ pipeline: { cameras: [camera] } })
  const sizeOf = async (query = '') => {
    const answer = await service.fetch(`/api/v1/cameras/dock/snapshot.jpg${query}`)
    expect(answer.status).toBe(200)
    const { width, height } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata()
    return [width, height]
  }
  try {
    const stream = await service.stream()
    const [found] = await stream.detections('dock')
    expect(found?.frame).toMatchObject({ widthPx: 640, heightPx: 360 })
    expect(main.opened).toBe(0)
    expect(await Promise.all([sizeOf(), sizeOf('?overlay=1'), sizeOf()])).toEqual(Array(3).fill([1280, 720]))
    expect(main.opened).toBe(1)
    await until('the end of the session', () => main.open === 0)

    // Another shape: the place of a box in the main stream is not known.
    await service.send('PATCH', '/api/v1/cameras/dock', { analyseUrl: rtsp.url('/cif') })
    await until('the other stream', async () => (await service.camera('dock')).stats.source?.widthPx === 352)
    expect(await sizeOf()).toEqual([1280, 720])
    const [width = 0, height = 0] = await sizeOf('?overlay=1')
    expect(width / height).toBeCloseTo(352 / 288, 1)

    rtsp.removeStream('/main')
    await until('a failure', async () => {
      const answer = await service.fetch('/api/v1/cameras/dock/snapshot.jpg')
      const { code, detail } = (await answer.json().catch(() => ({}))) as { code?: string; detail?: string }
      return (
        answer.status === 503 && code === 'GANTRY_SOURCE_FAILED' && /main stream: .*404/.test(detail ?? '')
      )
    })
    await stream.detections('dock', 2)

    const changed = await service.send<CameraView>('PATCH', '/api/v1/cameras/dock', {
      analyseUrl: null,
      url: rtsp.url('/cif'),
      decode: 'auto',
    })
    expect(changed.config.analyseUrl).toBeUndefined()
    const mode = () => service.metric(/gantry_camera_decode\{camera="dock",mode="\w+"\}/)
    await until('the camera as it is now', async () => (await mode()) === 1)
    stream.close()
    await service.end()
    expect(service.stderr).not.toContain('c4nary')
  } finally {
    await service[Symbol.asyncDispose]()
    await rtsp.stop()
    await folder.remove()
  }
}, 60_000)
