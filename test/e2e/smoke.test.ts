import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { GrpcClient } from '../support/grpc-client.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** What must hold on every version of Node that Gantry runs on; CI runs this file on each (scripts/smoke.mjs). */
describe(`R21: the whole service on Node ${process.versions.node}`, () => {
  let rtsp: LoopingRtspServer
  let service: TestService

  beforeAll(async () => {
    rtsp = await rtspCameras(1)
    service = await TestService.start({
      pipeline: {
        models: { repository: join(import.meta.dirname, '../../models'), control: 'explicit', load: ['ppe'] },
        modelServer: {},
      },
    })
    await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 90_000)
    // Only now: from its first camera on, the model server stands behind.
    await service.send('POST', '/api/v1/cameras', { id: 'dock', url: rtsp.url('/cam1'), sampleFps: 10 })
  }, 120_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await rtsp?.stop()
  })

  it('infers a hundred frames of an RTSP camera', async () => {
    const inferred = /gantry_frames_total\{.*state="inferred".*\}/
    await until('100 frames', async () => (await service.metric(inferred)) >= 100, 60_000)
    const { total } = await until('the newest result', () => newest(service))
    expect(total).toBeGreaterThan(0)
    expect((await service.ready()).engines).toMatchObject([{ state: 'ready', restarts: 0 }])
  }, 90_000)

  it.skipIf(skipsBrowser())(
    'shows them on the page',
    async () => {
      const browser = await launchBrowser()
      try {
        const { page, misdeeds } = await openPage(browser, `${service.url}/`)
        await page.getByText('dock').first().waitFor()
        expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
      } finally {
        await browser.close()
      }
    },
    60_000,
  )

  const pixels = new Uint8Array(64 * 64 * 3).fill(114)

  it('answers a KServe request by HTTP', async () => {
    const image = { name: 'image', datatype: 'UINT8', shape: [64, 64, 3], data: [...pixels] }
    const answer = await service.send<{ outputs: unknown[] }>('POST', '/v2/models/ppe/infer', {
      inputs: [image],
    })
    expect(answer).toMatchObject({ model_name: 'ppe', outputs: [{ name: 'detections', datatype: 'FP32' }] })
  })

  it('answers a KServe request by gRPC', async () => {
    const { modelServer } = await service.ready()
    const client = new GrpcClient(modelServer?.grpcPort ?? 0)
    try {
      const answer = await client.call('ModelInfer', {
        model_name: 'ppe',
        inputs: [{ name: 'image', datatype: 'UINT8', shape: [64, 64, 3] }],
        raw_input_contents: [pixels],
      })
      expect(answer).toMatchObject({ model_name: 'ppe', outputs: [{ name: 'detections', datatype: 'FP32' }] })
    } finally {
      client.close()
    }
  })

  it('ends with 0 after SIGTERM, and has said nothing but lines of its log', async () => {
    service.kill('SIGTERM')
    expect(await service.exited()).toBe(0)
    const foreign = service.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    expect(foreign).toEqual([])
  })
})

async function newest(service: TestService): Promise<{ total: number } | undefined> {
  const { items } = await service.json<{ items: { detections: unknown[] }[] }>(
    '/api/v1/detections?camera=dock&limit=50',
  )
  const total = items.reduce((sum, { detections }) => sum + detections.length, 0)
  return total > 0 ? { total } : undefined
}
