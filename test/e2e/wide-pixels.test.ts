import sharp from 'sharp'
import { expect, it } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import type { PictureHeader } from '../../src/messages/stream-protocol.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { dockClip } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { ffmpegRun, tempFolder } from '../support/video-clips.js'

it('R57: a recorder that sends half as many pixels a line shows the same helmets, signalled or set', async () => {
  const folder = await tempFolder()
  const rtsp = new LoopingRtspServer()
  await rtsp.start()
  await ffmpegRun('-ss', '4', '-i', dockClip, '-frames:v', '1', folder.file('picture.png'))
  const still = ['-loop', '1', '-i', folder.file('picture.png'), '-t', '2', '-r', '5']
  const codec = ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '18', '-g', '5', '-pix_fmt', 'yuv420p']
  // The control has lost as many pixels, and is as wide as it was.
  for (const [name, filters] of [
    ['control', 'scale=640:720,scale=1280:720,setsar=1'],
    ['signalled', 'scale=640:720,setsar=2/1'],
    ['untold', 'scale=640:720,setsar=1'],
  ] as const) {
    await ffmpegRun(...still, '-vf', filters, ...codec, folder.file(`${name}.mp4`))
    await rtsp.addStream(`/${name}`, folder.file(`${name}.mp4`))
  }
  const cameras = [
    { id: 'control', url: rtsp.url('/control') },
    { id: 'signalled', url: rtsp.url('/signalled') },
    { id: 'file', url: folder.file('signalled.mp4') },
    { id: 'set', url: rtsp.url('/untold'), displayAspectRatio: '16:9' },
    { id: 'both', url: rtsp.url('/signalled'), analyseUrl: rtsp.url('/signalled') },
  ].map((camera) => ({ ...camera, sampleFps: 1 }))
  const service = await TestService.start({ pipeline: { mediaRoot: folder.path, cameras } })
  try {
    const stream = await service.stream({ frames: true })
    // Two of the heads are near the threshold, and come and go with the noise of the encoder.
    const helmets = new Map<string, number>()
    for (const { id } of cameras) {
      const [message] = await stream.detections(id)
      expect(message?.frame).toMatchObject({ widthPx: 1280, heightPx: 720 })
      helmets.set(id, message?.detections.filter(({ label }) => label === 'helmet').length ?? 0)
    }
    expect([...helmets]).toEqual(cameras.map(({ id }) => [id, 3]))

    const headerOf = (picture: Buffer) =>
      JSON.parse(picture.subarray(4, 4 + picture.readUInt32BE(0)).toString()) as PictureHeader
    const seen = () =>
      new Map(stream.pictures.map((picture) => [headerOf(picture).cameraId, headerOf(picture)]))
    await until('a picture of each', () => seen().size === cameras.length)
    for (const header of seen().values()) {
      expect(header).toMatchObject({ sourceWidthPx: 1280, sourceHeightPx: 720, sourceXPx: 0, sourceYPx: 0 })
      expect(header.widthPx / header.heightPx).toBeCloseTo(16 / 9, 1)
    }
    for (const { id } of cameras)
      for (const query of ['', '?overlay=1']) {
        const answer = await service.fetch(`/api/v1/cameras/${id}/snapshot.jpg${query}`)
        const { width = 0, height = 1 } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata()
        expect(width / height).toBeCloseTo(16 / 9, 1)
        if (id === 'both') expect([width, height]).toEqual([1280, 720])
      }

    const patched = await service.send<CameraView>('PATCH', '/api/v1/cameras/set', {
      displayAspectRatio: null,
      sampleAspectRatio: '3:2',
    })
    expect(patched.config).toMatchObject({ sampleAspectRatio: '3:2' })
    expect(patched.config).not.toHaveProperty('displayAspectRatio')
    await until('the other shape', async () => (await service.camera('set')).stats.source?.widthPx === 960)
    const refused = await service.fetch('/api/v1/cameras/set', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ displayAspectRatio: '16:9' }),
    })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('sampleAspectRatio')
    stream.close()
    await service.end()
  } finally {
    await service[Symbol.asyncDispose]()
    await rtsp.stop()
    await folder.remove()
  }
}, 60_000)
