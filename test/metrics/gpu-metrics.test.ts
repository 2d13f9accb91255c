import { expect, it } from 'vitest'
import { type GpuFigures, GpuMetrics } from '../../src/metrics/gpu-metrics.js'
import { fakeGpu } from '../support/fake-gantry.js'

async function text(gpus: readonly GpuFigures[]): Promise<string> {
  let page = ''
  for await (const piece of new GpuMetrics(() => gpus).text()) page += piece
  return page
}

it('has the names, kinds and the one label of Triton', async () => {
  const card = fakeGpu()
  const page = await text([card])
  const lines = page.split('\n')
  for (const [name, kind, value] of [
    ['nv_gpu_utilization', 'gauge', '0.45'],
    ['nv_gpu_memory_total_bytes', 'gauge', '85520809984'],
    ['nv_gpu_memory_used_bytes', 'gauge', '1265631232'],
    ['nv_gpu_power_usage', 'gauge', '318.4'],
    ['nv_gpu_power_limit', 'gauge', '700'],
    ['nv_energy_consumption', 'counter', '12736.5'],
    ['gantry_gpu_up', 'gauge', '1'],
  ] as const) {
    expect(lines).toContain(`# TYPE ${name} ${kind}`)
    expect(lines).toContain(`${name}{gpu_uuid="${card.uuid}"} ${value}`)
  }
  expect(page.endsWith('\n')).toBe(true)
})

it('has every card of the machine once', async () => {
  const page = await text([fakeGpu(), fakeGpu({ index: 1, uuid: 'GPU-2', utilization: 0 })])
  expect(page.match(/^nv_gpu_utilization\{.*$/gm)).toEqual([
    expect.stringMatching(/ 0\.45$/) as string,
    'nv_gpu_utilization{gpu_uuid="GPU-2"} 0',
  ])
})

it('has no series for what is not known, but the energy that was counted', async () => {
  const lost = fakeGpu({
    utilization: null,
    memoryUsedBytes: null,
    memoryTotalBytes: null,
    powerWatts: null,
    powerLimitWatts: null,
    reason: 'GPU is lost',
  })
  const series = (await text([lost])).split('\n').filter((line) => line.includes('{'))
  expect(series.map((line) => line.replace(/\{.*\}/, ''))).toEqual([
    'gantry_gpu_up 0',
    'nv_energy_consumption 12736.5',
  ])
})

it('is nothing at all without a card', async () => {
  expect(await text([])).toBe('')
})
