import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterEach, describe, expect, it } from 'vitest'
import { ensembleStep, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addJsModel, addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('what models did for cameras and for API clients', () => {
  const cleanUp: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  function repositoryOfRed(): string {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-counts-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
    return dir
  }

  async function running(modelServer: Readonly<{ enabled: boolean }>): Promise<TestService> {
    return started({ models: { repository: repositoryOfRed() }, ensemble: 'red', modelServer })
  }

  async function started(pipeline: Readonly<Record<string, unknown>>): Promise<TestService> {
    const service = await TestService.start({
      pipeline: { ...pipeline, cameras: [{ id: 'a', url: 'push:' }] },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  async function push(service: TestService): Promise<void> {
    const red = { width: 64, height: 64, channels: 3 as const, background: 'red' }
    const body = new Uint8Array(await sharp({ create: red }).jpeg().toBuffer())
    const ended = /gantry_frames_total\{camera="a",state="inferred".*\}/
    const before = await service.metric(ended)
    await until('a camera that takes pictures', async () => {
      const headers = { 'content-type': 'image/jpeg' }
      const answer = await service.fetch('/api/v1/cameras/a/frames', { method: 'POST', headers, body })
      return answer.status === 202
    })
    await until('its result', async () => (await service.metric(ended)) === before + 1)
  }

  async function infer(service: TestService): Promise<void> {
    const data = Array(64 * 64 * 3).fill(255)
    const inputs = [{ name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data }]
    const answer = await service.fetch('/v2/models/red/infer', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs }),
    })
    expect(answer.status).toBe(200)
  }

  const requests = /^nv_inference_request_success\{model="red",version="1"\} (\d+)$/gm

  it('is added up under one set of labels, and the statistics of the model count clients alone', async () => {
    const service = await running({ enabled: true })
    await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 60_000)
    for (let frame = 0; frame < 3; frame++) await push(service)
    await infer(service)
    const page = await until('the sum', async () => {
      const text = await service.metrics()
      return [...text.matchAll(requests)][0]?.[1] === '4' ? text : undefined
    })
    expect([...page.matchAll(requests)]).toHaveLength(1)
    expect(page.match(/^# TYPE nv_inference_request_success/gm)).toHaveLength(1)
    expect(page).toContain('nv_inference_exec_count{model="red",version="1"} 4\n')
    expect(page).toContain('gantry_model_request_seconds_count{model="red",version="1"} 4\n')
    const stats = await service.json<{ model_stats: { inference_count: number }[] }>('/v2/models/red/stats')
    expect(stats.model_stats.map(({ inference_count }) => inference_count)).toEqual([1])
  }, 90_000)

  it('is told for cameras alone where there is no model server', async () => {
    const service = await running({ enabled: false })
    await push(service)
    await push(service)
    const page = await until('the count', async () => {
      const text = await service.metrics()
      return [...text.matchAll(requests)][0]?.[1] === '2' ? text : undefined
    })
    expect(page).toMatch(/^nv_inference_compute_infer_duration_us\{model="red",version="1"\} [1-9]/m)
  }, 60_000)

  it('counts the models of later steps under their names', async () => {
    const dir = repositoryOfRed()
    const rows = (name: string) => `{ name: "${name}" data_type: TYPE_FP32 dims: [ -1, 6 ] }`
    addJsModel(
      dir,
      'after',
      `input ${rows('IN')} output ${rows('OUT')}`,
      'export default () => ({ execute: ({ inputs }) => ({ OUT: inputs.IN }) })',
    )
    const steps = [
      redSteps.letterbox,
      redSteps.detect,
      ensembleStep('detection_head', { output0: 'head', geometry: 'geometry' }, { detections: 'raw' }),
      ensembleStep('after', { IN: 'raw' }, { OUT: 'detections' }),
    ]
    addModel(dir, 'site', { config: pictureEnsemble({ steps }) })
    const service = await started({
      models: { repository: dir, allowJsBackends: true },
      ensemble: 'site',
      modelServer: { enabled: false },
    })
    await push(service)
    await push(service)
    const counted = /^nv_inference_request_success\{model="(\w+)",version="1"\} 2$/gm
    await until('both counts', async () => {
      const names = [...(await service.metrics()).matchAll(counted)].map(([, name]) => name)
      return names.sort().join() === 'after,red'
    })
  }, 60_000)
})
