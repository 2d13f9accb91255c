import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { IndexEntry } from '../../src/serving/model-server.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { alive, descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('the model server of a running service', () => {
  const cleanUp: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  /** A repository with the model that cameras use and a model of its own. */
  function repository(): string {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-models-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
    return dir
  }

  async function running(models: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
    const service = await TestService.start({
      pipeline: {
        models: { repository: repository(), ...models },
        ensemble: 'red',
        modelServer: { enabled: true },
        ...more,
      },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  const modelsReady = (service: TestService) =>
    until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).status === 200, 30_000)

  function modelServerPid(service: TestService): number {
    const pid = descendants(service.pid).find(({ command }) => command.includes('model-server/main.js'))?.pid
    if (pid === undefined) throw new Error('no model server process')
    return pid
  }

  const infer = (service: TestService, init: RequestInit = {}) =>
    fetch(`${service.url}/v2/models/red/infer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        inputs: [
          { name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data: Array(64 * 64 * 3).fill(255) },
        ],
      }),
      ...init,
    })

  it('serves the models of the repository beside the cameras, through the port of the service', async () => {
    const service = await running()
    await modelsReady(service)
    const index = await service.json<IndexEntry[]>('/v2/repository/index', { method: 'POST' })
    expect(index).toEqual([{ name: 'red', version: '1', state: 'READY' }])
    const answer = await infer(service)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ model_name: 'red', model_version: '1' })
    const health = await until('the health of the models', async () => {
      const { modelServer } = await service.ready()
      return modelServer?.models.ready === 1 ? modelServer : undefined
    })
    expect(health).toMatchObject({ state: 'ready', models: { total: 1, ready: 1 } })
  })

  it('is started again after it was killed, while cameras and page go on', async () => {
    const service = await running()
    await modelsReady(service)
    const killed = modelServerPid(service)
    process.kill(killed, 'SIGKILL')
    await until('model server away', async () => (await fetch(`${service.url}/v2`)).status === 503, 5_000, 5)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    await modelsReady(service)
    expect((await infer(service)).status).toBe(200)
    expect(modelServerPid(service)).not.toBe(killed)
    expect(await service.metric(/gantry_model_server_restarts_total/)).toBe(1)
  })

  it('leaves no process behind when the service is killed', async () => {
    const service = await running()
    await modelsReady(service)
    const pids = descendants(service.pid).map(({ pid }) => pid)
    service.kill('SIGKILL')
    await service.exited()
    await until('no orphan', () => pids.every((pid) => !alive(pid)), 2_000)
  })
})
