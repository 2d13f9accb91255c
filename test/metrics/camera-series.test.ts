import { expect, it } from 'vitest'
import { mostRetired } from '../../src/metrics/camera-series.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'

/** Series of every kind, as a camera that worked leaves them. */
function used(metrics: ReturnType<typeof createServiceMetrics>, camera: string): void {
  metrics.framesReceived.inc({ camera })
  metrics.framesEnded.inc({ camera, state: 'shed', cause: 'stopping' })
  metrics.sourceWarnings.inc({ camera, kind: 'corrupt' })
  metrics.decodeGap.observe({ camera }, 0.1)
  metrics.infer.observe({ camera, model: 'ppe' }, 0.1)
  metrics.cameraState.set({ camera, state: 'live' }, 1)
}

const cameras = (text: string) => new Set(text.match(/(?<=camera=")[^"]+/g))

it('drops the series of the cameras removed longest ago, of every metric, once there are too many', async () => {
  const metrics = createServiceMetrics()
  used(metrics, 'stays')
  for (let n = 0; n < mostRetired + 3; n += 1) {
    used(metrics, `gone-${n}`)
    await metrics.cameraSeries.retire(`gone-${n}`)
  }
  const left = cameras(await metrics.registry.metrics())
  expect(left.size).toBe(mostRetired + 1)
  expect(left).toContain('stays')
  expect(left).toContain(`gone-${mostRetired + 2}`)
  for (const gone of ['gone-0', 'gone-1', 'gone-2']) expect(left).not.toContain(gone)
})

it('keeps the series of a camera that is there again', async () => {
  const metrics = createServiceMetrics()
  used(metrics, 'back')
  await metrics.cameraSeries.retire('back')
  metrics.cameraSeries.keep('back')
  for (let n = 0; n <= mostRetired; n += 1) await metrics.cameraSeries.retire(`gone-${n}`)
  expect(cameras(await metrics.registry.metrics())).toContain('back')
})
