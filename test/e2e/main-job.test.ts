import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import type { PictureHeader } from '../../src/messages/stream-protocol.js'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('the main job', () => {
  let rtsp: LoopingRtspServer
  let service: TestService

  beforeAll(async () => {
    rtsp = await rtspCameras(3)
    service = await TestService.start({
      pipeline: {
        cameras: [
          { id: 'dock-1', url: rtsp.url('/cam1'), sampleFps: 3 },
          { id: 'dock-2', url: rtsp.url('/cam2'), sampleFps: 3 },
        ],
      },
    })
  })

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await rtsp?.stop()
  })

  it('turns RTSP cameras into detections on the stream, in order and with boxes inside the picture', async () => {
    const stream = await service.stream()
    const messages = await stream.detections('dock-1', 5)
    stream.close()
    const seqs = messages.map((message) => message.seq)
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
    for (const { frame, detections } of messages) {
      expect(frame).toEqual({ widthPx: 1280, heightPx: 720, quality: 'ok' })
      for (const { boxPx } of detections) {
        expect(boxPx.x1).toBeGreaterThanOrEqual(0)
        expect(boxPx.x2).toBeLessThanOrEqual(1280)
        expect(boxPx.y1).toBeLessThan(boxPx.y2)
        expect(boxPx.y2).toBeLessThanOrEqual(720)
      }
    }
  })

  it('finds people at the dock', async () => {
    const stream = await service.stream({ labels: ['person'] })
    await stream.next((message) => message.type === 'detections' && message.detections.length > 0)
    stream.close()
  })

  it('gives the latest result and the recent ones by HTTP', async () => {
    await until('a result', () => service.json('/api/v1/cameras/dock-2/latest').catch(() => undefined))
    const latest = detectionsMessageSchema.parse(await service.json('/api/v1/cameras/dock-2/latest'))
    expect(latest.cameraId).toBe('dock-2')
    const page = await service.json<{ items: unknown[] }>('/api/v1/detections?camera=dock-2&limit=5')
    expect(page.items.length).toBeGreaterThan(0)
    for (const item of page.items) expect(detectionsMessageSchema.parse(item).cameraId).toBe('dock-2')
  })

  it('sends the analysed picture with the seq of its detections to those who ask', async () => {
    const stream = await service.stream({ cameras: ['dock-1'], frames: true })
    const picture = await until('a picture', () => stream.pictures.at(-1), 15_000)
    const headerBytes = picture.readUInt32BE(0)
    const header = JSON.parse(picture.subarray(4, 4 + headerBytes).toString('utf8')) as PictureHeader
    expect(picture.subarray(4 + headerBytes, 6 + headerBytes)).toEqual(Buffer.from([0xff, 0xd8]))
    expect(header.widthPx / header.heightPx).toBeCloseTo(1280 / 720, 1)
    await until('its detections', () =>
      stream.messages.some((message) => message.type === 'detections' && message.seq === header.seq),
    )
    stream.close()
  })

  it('serves a snapshot, with and without boxes', async () => {
    for (const query of ['', '?overlay=1']) {
      const response = await fetch(`${service.url}/api/v1/cameras/dock-1/snapshot.jpg${query}`)
      expect(response.headers.get('content-type')).toBe('image/jpeg')
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(5_000)
    }
  })

  it('adds, changes, disables and removes a camera while the others go on', async () => {
    const stream = await service.stream({ cameras: ['dock-1'] })
    await service.send('POST', '/api/v1/cameras', { id: 'yard', url: rtsp.url('/cam3'), sampleFps: 2 })
    await service.cameraIs('yard', 'live')
    const patched = await service.send<CameraView>('PATCH', '/api/v1/cameras/yard', { sampleFps: 4 })
    expect(patched.config.sampleFps).toBe(4)
    await service.cameraIs('yard', 'live')
    await service.send('PATCH', '/api/v1/cameras/yard', { enabled: false })
    await service.cameraIs('yard', 'disabled')
    await service.json('/api/v1/cameras/yard', { method: 'DELETE' })
    await expect(service.camera('yard')).rejects.toThrow('404')
    const before = (await stream.detections('dock-1'))[0]?.seq ?? 0
    const after = (await stream.detections('dock-1'))[0]?.seq ?? 0
    expect(after).toBeGreaterThan(before)
    expect((await service.camera('dock-1')).status.attempts).toBe(1)
    stream.close()
  })

  it('accounts for every frame: received is the sum of all endings and those in flight', async () => {
    const text = await (await fetch(`${service.url}/metrics`)).text()
    const sum = (name: string) =>
      [...text.matchAll(new RegExp(`^${name}\\{camera="dock-1"[^}]*\\} (\\d+)$`, 'gm'))].reduce(
        (total, match) => total + Number(match[1]),
        0,
      )
    expect(sum('gantry_frames_received_total')).toBeGreaterThan(0)
    expect(sum('gantry_frames_received_total')).toBe(
      sum('gantry_frames_total') + sum('gantry_frames_in_flight'),
    )
  })

  it('counts restarts from zero, so that the first one shows as an increase', async () => {
    const text = await (await fetch(`${service.url}/metrics`)).text()
    expect(text).toContain('gantry_engine_restarts_total{engine="0"} 0')
    expect(text).toContain('gantry_engine_instance_exits_total{engine="0"} 0')
  })

  it('refuses a camera it has, naming it', async () => {
    const body = { id: 'dock-1', url: rtsp.url('/cam3') }
    await expect(service.send('POST', '/api/v1/cameras', body)).rejects.toThrow(/409.*dock-1/)
  })
})
