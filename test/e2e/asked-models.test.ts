import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { IndexEntry } from '../../src/serving/model-server.js'
import { GrpcClient } from '../support/grpc-client.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const onnx = redDetector('uint8-nhwc')
const notAskedFor = { state: 'UNAVAILABLE', reason: 'not asked for yet' }

describe('models of API clients beside cameras', () => {
  const cleanUp: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  /** With the models `red`, `other` and `broken`. */
  async function running(models: Readonly<Record<string, unknown>> = {}): Promise<TestService> {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-asked-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    for (const name of ['red', 'other']) addModel(dir, name, { onnx })
    addModel(dir, 'broken', { onnx: onnx.subarray(0, 50) })
    const service = await TestService.start({
      pipeline: {
        models: { repository: dir, ...models },
        ensemble: 'red',
        modelServer: { enabled: true },
        cameras: [{ id: 'a', url: 'push:' }],
      },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  const processes = (service: TestService) =>
    descendants(service.pid).filter(({ command }) => command.includes('model-server/main.js'))
  const indexOf = async (service: TestService) =>
    (await service.json<IndexEntry[]>('/v2/repository/index', { method: 'POST' })).map(
      ({ name, state, reason }) => ({ name, state, reason }),
    )
  const inputs = [
    { name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data: Array<number>(64 * 64 * 3).fill(255) },
  ]
  const infer = (service: TestService, model: string) =>
    service.fetch(`/v2/models/${model}/infer`, { method: 'POST', body: JSON.stringify({ inputs }) })

  it('are loaded by the first request for each, by a process that the first request starts', async () => {
    const service = await running()
    const before = await service.ready()
    expect(before.modelServer).toMatchObject({ state: 'idle', pid: null, reason: '' })
    expect(await service.metric(/gantry_model_server_up/)).toBe(1)
    expect(processes(service)).toEqual([])
    // Before anybody has asked for one.
    const answers = Promise.all([1, 2, 3].map(() => infer(service, 'red')))
    expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200])
    expect(processes(service)).toHaveLength(1)
    expect(await indexOf(service)).toEqual([
      { name: 'broken', ...notAskedFor },
      { name: 'other', ...notAskedFor },
      { name: 'red', state: 'READY' },
    ])
    expect(service.stderr.match(/"model loaded"/g)).toHaveLength(1)
    const failed = await infer(service, 'broken')
    expect(failed.status).toBe(404)
    expect(await failed.text()).toMatch(/'broken' has no available versions: .+/)
    expect((await service.fetch('/v2/models/other/ready')).status).toBe(200)
    expect((await service.fetch('/v2/health/ready')).status).toBe(400)
    expect((await indexOf(service)).map(({ state }) => state)).toEqual(['UNAVAILABLE', 'READY', 'READY'])
    expect((await service.fetch('/readyz')).status).toBe(200)
  }, 120_000)

  it('are loaded by the first gRPC clients, whose connections start the process', async () => {
    const service = await running()
    const port = (await service.ready()).modelServer?.grpcPort ?? 0
    expect(port).toBeGreaterThan(0)
    const clients = [1, 2, 3].map(() => new GrpcClient(port))
    cleanUp.push(() => clients.forEach((client) => client.close()))
    const ready = await Promise.all(clients.map((client) => client.call('ModelReady', { name: 'other' })))
    expect(ready.map((answer) => answer['ready'])).toEqual([true, true, true])
    expect(processes(service)).toHaveLength(1)
    expect(await clients[0]?.call('ModelMetadata', { name: 'red' })).toMatchObject({ name: 'red' })
    expect(await clients[1]?.call('ServerReady', {})).toMatchObject({ ready: false })
    expect((await service.ready()).modelServer).toMatchObject({ state: 'ready', grpcPort: port })
    await service.end()
  }, 120_000)

  it.each([
    ['none', 'READY', 2],
    ['poll', 'READY', 2],
    ['explicit', undefined, 0],
  ])(
    'are what models.control says where it is written (%s)',
    async (control, state, loaded) => {
      const service = await running({ control })
      // Beside cameras its process gives way to all others of the machine.
      await until(
        'models that are to serve',
        async () => {
          const { modelServer } = await service.ready()
          return modelServer?.state === 'ready' && modelServer.models.ready === loaded
        },
        120_000,
      )
      const index = await indexOf(service)
      expect(index.find(({ name }) => name === 'red')?.state).toBe(state)
      expect(index.map(({ reason }) => reason)).not.toContain(notAskedFor.reason)
    },
    240_000,
  )

  it('are all loaded at the start where there is no camera', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-asked-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    addModel(dir, 'red', { onnx })
    const service = await TestService.start({
      pipeline: { engines: 0, models: { repository: dir }, modelServer: { enabled: true } },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    await until('its model', async () => (await service.ready()).modelServer?.models.ready === 1, 60_000)
  }, 120_000)
})
