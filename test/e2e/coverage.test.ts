import { afterEach, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import type { coverageSchema } from '../../src/api/coverage-schema.js'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

type Coverage = z.infer<typeof coverageSchema>
type CameraTime = Coverage['items'][number]

describe('the time of cameras', () => {
  const cleanUp: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function running(more: Record<string, unknown> = {}) {
    const rtsp: LoopingRtspServer = await rtspCameras(1)
    cleanUp.push(() => rtsp.stop())
    const url = rtsp.url('/cam1')
    const service = await TestService.start({
      pipeline: { cameras: [{ id: 'cam-1', url, sampleFps: 5, ...more }] },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return { rtsp, service }
  }

  async function timeOf(service: TestService): Promise<CameraTime> {
    const { items } = await service.json<Coverage>('/api/v1/coverage?cameraId=cam-1')
    const [time] = items
    if (!time) throw new Error('there is no time of the camera')
    return time
  }

  /** Waits until the last spans are of these causes, `null` for watched. */
  function untilLast(service: TestService, causes: readonly (string | null)[]): Promise<CameraTime> {
    return until(
      `spans that end with ${causes.join(', ')}`,
      async () => {
        const time = await timeOf(service)
        const last = time.spans?.slice(-causes.length).map(({ cause }) => cause)
        return JSON.stringify(last) === JSON.stringify(causes) ? time : undefined
      },
      60_000,
    )
  }

  function expectTiled({
    spans,
    from,
    to,
    watchedSeconds,
    blindSeconds,
    blindSecondsByCause,
  }: CameraTime): void {
    let endAt = from
    for (const span of spans ?? []) {
      expect(span.from).toBe(endAt)
      endAt = span.to
    }
    expect(endAt).toBe(to)
    expect(watchedSeconds + blindSeconds).toBeCloseTo((Date.parse(to) - Date.parse(from)) / 1_000, 3)
    const byCause = Object.values(blindSecondsByCause).reduce((sum, seconds) => sum + seconds, 0)
    expect(byCause).toBeCloseTo(blindSeconds, 3)
  }

  it('R131: all of it is watched or blind, with the cause, through a camera that goes, an engine that dies and a switch', async () => {
    const { rtsp, service } = await running()
    await untilLast(service, ['service_down', null])

    await rtsp.stop()
    await untilLast(service, [null, 'disconnected'])
    const again = await rtspCameras(1)
    cleanUp.push(() => again.stop())
    await service.send('PATCH', '/api/v1/cameras/cam-1', { url: again.url('/cam1') })
    await untilLast(service, ['disconnected', null])

    const [engine] = descendants(service.pid).filter(({ command }) =>
      command.includes('processes/engine/main.js'),
    )
    process.kill(engine?.pid ?? 0, 'SIGKILL')
    await untilLast(service, [null, 'engine_down', null])

    await service.send('PATCH', '/api/v1/cameras/cam-1', { enabled: false })
    await untilLast(service, [null, 'disabled'])
    await service.send('PATCH', '/api/v1/cameras/cam-1', { enabled: true })
    const time = await untilLast(service, ['disabled', null])
    expectTiled(time)
    expect(Date.now() - Date.parse(time.to)).toBeLessThan(5_000)

    const beforeMs = performance.now()
    const page = await service.metrics()
    const counted = [...page.matchAll(/^gantry_coverage_seconds_total\{camera="cam-1",.*\} (\S+)$/gm)]
    const seconds = counted.reduce((sum, [, value]) => sum + Number(value), 0)
    const after = await timeOf(service)
    const lifeS = (Date.parse(after.to) - Date.parse(after.from)) / 1_000
    const betweenS = (performance.now() - beforeMs) / 1_000
    // A busy machine has its last result some time after the picture.
    expect(lifeS - seconds).toBeGreaterThan(-0.5)
    expect(lifeS - seconds).toBeLessThan(betweenS + 4.5)
  }, 240_000)

  it('R129: after a kill the time until pictures flow again is blind, cause service_down, and what was before is known', async () => {
    const { service } = await running()
    await untilLast(service, [null])
    const before = await until('some seconds watched', async () => {
      const time = await timeOf(service)
      return time.watchedSeconds > 3 ? time : undefined
    })
    service.kill('SIGKILL')
    await service.exited()
    const again = await TestService.start({ ...service.options, like: service })
    cleanUp.push(() => again[Symbol.asyncDispose]())
    const time = await untilLast(again, ['service_down', null])
    expectTiled(time)
    expect(time.from).toBe(before.from)
    expect(time.watchedSeconds).toBeGreaterThan(before.watchedSeconds - 1.6)
    expect(time.blindSecondsByCause['service_down']).toBeGreaterThan(0)
  }, 120_000)

  it('R131: refuses what cannot be asked for, and knows cameras that there are not', async () => {
    const { service } = await running({ enabled: false })
    const status = async (query: string) => (await service.fetch(`/api/v1/coverage?${query}`)).status
    expect(await status('cameraId=nobody')).toBe(404)
    expect(await status('from=2026-11-20T09:00:00Z&to=2026-11-20T08:00:00Z')).toBe(400)
    expect(await status('from=2020-11-20T09:00:00Z&to=2026-11-20T08:00:00Z')).toBe(400)
    expect(await status('from=yesterday')).toBe(400)
    expect(await status('camera=cam-1')).toBe(400)
    expect(await status('spans=0')).toBe(200)
    const { items } = await service.json<Coverage>('/api/v1/coverage?spans=0')
    expect(items.map(({ cameraId, spans }) => [cameraId, spans])).toEqual([['cam-1', null]])
  })
})
