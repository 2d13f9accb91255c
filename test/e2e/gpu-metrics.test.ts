import { describe, expect, it, onTestFinished } from 'vitest'
import { statusSchema } from '../../src/api/readiness-schemas.js'
import { FakeNvidiaSmi, h100 } from '../support/fake-nvidia-smi.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { alive } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

/** A service with an engine, on a machine whose nvidia-smi says this. */
async function serviceBeside(says: string, { isStubborn = false, modelServer = false } = {}) {
  const smi = new FakeNvidiaSmi(tempDir(), says)
  smi.stubborn(isStubborn)
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  const service = await TestService.start({
    pipeline: {
      models: { repository, control: 'none' },
      ensemble: 'red',
      modelServer: { enabled: modelServer },
      cameras: [{ id: 'a', url: 'push:' }],
    },
    env: { PATH: smi.path, GANTRY__SERVER__GPU_METRICS_INTERVAL_MS: '100' },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const gpus = async () => statusSchema.parse(await service.json('/api/v1/status')).gpus
  return { smi, service, gpus }
}

const lines = (page: string) => page.split('\n').filter((line) => /^(nv_gpu|nv_energy|gantry_gpu)/.test(line))

describe('a service on a machine with a GPU', () => {
  it(
    'tells its figures once, whatever else runs models, and runs nothing for a scrape',
    { timeout: 90_000 },
    async () => {
      const { smi, service, gpus } = await serviceBeside(h100.row, { modelServer: true })
      await until('a reading', async () => (await gpus()).length === 1)
      await until(
        'the models of clients',
        async () => (await service.metrics()).includes('nv_cpu_utilization '),
        60_000,
      )
      const label = `{gpu_uuid="${h100.uuid}"}`
      for (const port of [service.httpPort, service.metricsPort]) {
        const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
        expect(lines(page).filter((line) => !line.startsWith('nv_energy'))).toEqual([
          `nv_gpu_utilization${label} 0.45`,
          `nv_gpu_memory_total_bytes${label} 85520809984`,
          `nv_gpu_memory_used_bytes${label} 1265631232`,
          `nv_gpu_power_usage${label} 318.42`,
          `nv_gpu_power_limit${label} 700`,
          `gantry_gpu_up${label} 1`,
        ])
        expect(page).toContain('\n# TYPE nv_energy_consumption counter\n')
        expect(page.match(/^# TYPE nv_gpu_utilization/gm)).toHaveLength(1)
      }
      await until('energy', async () => (await service.metric(/nv_energy_consumption\{.*\}/)) > 50)
      expect((await gpus())[0]).toMatchObject({ index: 0, name: 'NVIDIA H100 80GB HBM3', reason: '' })
      expect(smi.runs).toHaveLength(1)
      expect(smi.runs[0]?.args).toContain('--loop-ms=100')
      service.kill('SIGKILL')
      await service.exited()
      await until('its end', () => !alive(smi.runs[0]?.pid ?? 0))
    },
  )

  it('R43: answers beside an nvidia-smi that hangs, and leaves none behind', async () => {
    const { smi, service, gpus } = await serviceBeside('', { isStubborn: true })
    await until('a run', () => smi.runs.length > 0)
    expect(lines(await service.metrics())).toEqual([])
    expect(await gpus()).toEqual([])
    expect((await service.ready()).reasons).toEqual([])
    await service.end()
    expect(smi.runs.filter(({ pid }) => alive(pid))).toEqual([])
  })

  it('R43: names no metric of a GPU where there is none', async () => {
    const { smi, service, gpus } = await serviceBeside('No devices were found\nexit 6')
    await until('a run', () => smi.runs.length > 0)
    const before = smi.runs.length
    for (let scrape = 0; scrape < 20; scrape += 1)
      expect(await service.metrics()).not.toMatch(/nv_gpu|nv_energy|gantry_gpu/)
    expect(await gpus()).toEqual([])
    // It is tried again now and then, whether somebody asks or not.
    expect(smi.runs.length - before).toBeLessThan(5)
  })
})
