import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { metricsText } from '../../src/metrics/metrics-text.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'

async function whole(registry: Registry): Promise<string> {
  let text = ''
  for await (const piece of metricsText(registry)) text += piece
  return text
}

describe('metricsText', () => {
  it('writes what the registry writes', async () => {
    const { registry, queue, detections, cameraState } = createServiceMetrics()
    for (const camera of ['dock-1', 'Straße "7"\n']) {
      queue.observe({ camera, model: 'ppe' }, 0.004)
      detections.inc({ camera, label: 'helmet' }, 3)
      cameraState.set({ camera, state: 'live' }, 1)
    }
    expect(await whole(registry)).toBe(await registry.metrics())
  })

  it('writes a large page in pieces', async () => {
    const { registry, queue } = createServiceMetrics()
    for (let at = 0; at < 100; at += 1) queue.observe({ camera: `dock-${at}`, model: 'ppe' }, 0.004)
    const lengths: number[] = []
    for await (const piece of metricsText(registry)) lengths.push(piece.length)
    expect(lengths.length).toBeGreaterThan(1)
  })

  it('asks metrics that are collected when somebody looks', async () => {
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    expect(await whole(registry)).toMatch(/^process_resident_memory_bytes \d+$/m)
  })

  it('writes an empty line of no metrics, like the registry', async () => {
    const registry = new Registry()
    expect(await whole(registry)).toBe(await registry.metrics())
  })
})
