import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AdmittedCamera, HeadroomView } from '../../src/api/gantry.js'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

type Problem = Readonly<{ code: string; detail: string; hint: string }>

describe('room for more cameras', () => {
  let rtsp: LoopingRtspServer
  beforeAll(async () => {
    rtsp = await rtspCameras(2)
  })
  afterAll(() => rtsp.stop())

  const start = (settings: Readonly<Record<string, unknown>>) =>
    TestService.start({ pipeline: { cameras: cameraSettings(rtsp, 1, 2), ...settings } })
  const headroom = (service: TestService, query = '') =>
    service.json<HeadroomView>(`/api/v1/headroom${query}`)
  const known = (service: TestService) =>
    until(
      'a known headroom',
      async () => {
        const view = await headroom(service)
        return view.cameras === null ? undefined : view
      },
      60_000,
    )
  const add = (service: TestService, id: string) =>
    service.fetch('/api/v1/cameras', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, url: rtsp.url('/cam2'), sampleFps: 2 }),
    })

  it('is told with its arithmetic, and refuses cameras beyond it', async () => {
    await using service = await start({ latencyObjectiveMs: 10, admission: 'refuse' })
    expect(await headroom(service)).toMatchObject({ cameras: null, limitedBy: null, now: null })
    const view = await known(service)
    // No picture is decoded and analysed within 10 ms; on a machine that is busy the processor is in the way before.
    expect(view).toMatchObject({ cameras: 0, objectiveMs: 10, now: { cameras: 1 } })
    expect(['latency', 'cpu']).toContain(view.limitedBy)
    expect(view.perCamera?.framesPerSecond).toBeCloseTo(2, 0)
    expect(view.perCamera?.decoderCores).toBeGreaterThan(0)
    expect(view.perCamera?.cpuMsPerFrame).toBeGreaterThan(1)
    const easy = await headroom(service, '?latencyMs=600000&sampleFps=0.01&like=cam-1')
    expect(easy.limitedBy).not.toBe('latency')
    expect(await service.metric(/gantry_headroom_cameras/)).toBe(0)

    const refused = await add(service, 'late')
    const problem = (await refused.json()) as Problem
    expect(refused.status).toBe(503)
    expect(problem).toMatchObject({ code: 'GANTRY_NO_ROOM' })
    expect(problem.detail).toMatch(
      /no room for camera "late": with one more (results come later|the processor)/,
    )
    expect((await service.fetch('/api/v1/cameras/late')).status).toBe(404)

    for (const [query, status] of [
      ['?like=nobody', 404],
      ['?sampleFps=fast', 400],
      ['?latencyMs=0', 400],
      ['?more=1', 400],
    ] as const)
      expect([query, (await service.fetch(`/api/v1/headroom${query}`)).status]).toEqual([query, status])

    // One that is there may be changed and switched off, and then there is no room for it either.
    await service.send('PATCH', '/api/v1/cameras/cam-1', { sampleFps: 1 })
    await service.send('PATCH', '/api/v1/cameras/cam-1', { enabled: false })
    const again = await service.fetch('/api/v1/cameras/cam-1', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ enabled: true }),
    })
    expect([again.status, ((await again.json()) as Problem).code]).toEqual([503, 'GANTRY_NO_ROOM'])
  }, 120_000)

  it('is warned of where it is to be warned of', async () => {
    await using service = await start({ latencyObjectiveMs: 10, admission: 'warn' })
    await known(service)
    const added = await add(service, 'late')
    expect(added.status).toBe(201)
    expect(((await added.json()) as AdmittedCamera).warnings?.[0]).toMatch(/no room for this camera/)
    await until('a line in the log', () =>
      service.stderr.includes('camera is taken, though there is no room for it'),
    )
    await service.cameraIs('late', 'live')
  }, 120_000)
})
