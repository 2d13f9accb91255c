import sharp from 'sharp'
import { expect, it } from 'vitest'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

it('R105: a snapshot is as large as the camera, with the boxes of that very picture; size=analysed is as before', async () => {
  const rtsp = await rtspCameras(1)
  try {
    await using service = await TestService.start({
      pipeline: { cameras: [{ id: 'dock', url: rtsp.url('/cam1'), sampleFps: 1 }] },
    })
    const take = async (query: string) => {
      const answer = await service.fetch(`/api/v1/cameras/dock/snapshot.jpg${query}`)
      if (answer.status !== 200) return undefined
      const { width, height } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata()
      expect(answer.headers.get('gantry-picture-size')).toBe(`${width}x${height}`)
      expect(Date.parse(answer.headers.get('gantry-captured-at') ?? '')).toBeGreaterThan(0)
      return { picture: answer.headers.get('gantry-picture'), width, height }
    }
    const own = { picture: 'own', width: 1_280, height: 720 }
    for (const query of ['', '?overlay=1'])
      await until(
        `one at its own resolution ${query}`,
        async () => (await take(query))?.picture === 'own',
        60_000,
      )
    expect(await take('?overlay=1')).toEqual(own)
    const small = await take('?size=analysed&overlay=1')
    expect(small?.picture).toBe('analysed')
    expect(small?.width).toBeLessThan(1_280)
    const { stats } = await service.camera('dock')
    const { received, inferred, superseded, reused, suspect, lost } = stats.frames
    expect(inferred + superseded + reused + suspect + lost).toBeLessThanOrEqual(received)
  } finally {
    await rtsp.stop()
  }
}, 180_000)
