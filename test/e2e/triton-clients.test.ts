import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clientRepository } from '../support/model-repository.js'
import { TestService } from '../support/service.js'
import { runClient, tritonClients } from '../support/triton-clients.js'
import { until } from '../support/until.js'

const suite = join(import.meta.dirname, '../clients/tritonclient_suite.py')

const checks = [
  'health',
  'metadata',
  'configuration',
  'statistics',
  'inference',
  'requested_outputs',
  'datatypes',
  'strings',
  'classification',
  'large_tensor',
  'compression',
  'asynchronous',
  'schedule_and_parameters',
  'errors',
  'repository',
  'settings',
  'shared_memory',
]

describe.skipIf(tritonClients === undefined)('tritonclient, unmodified', () => {
  const repository = clientRepository()
  let service: TestService
  let grpc: string

  beforeAll(async () => {
    service = await TestService.start({
      pipeline: {
        models: {
          repository: [repository.models, join(import.meta.dirname, '../../models')],
          control: 'explicit',
          load: ['*'],
        },
        modelServer: { enabled: true },
      },
    })
    const { modelServer } = await until('gRPC', async () => {
      const ready = await service.ready()
      return ready.modelServer?.grpcPort ? ready : undefined
    })
    grpc = `127.0.0.1:${modelServer?.grpcPort}`
    await until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).ok, 120_000)
  }, 180_000)

  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(repository.dir, { recursive: true, force: true })
  })

  async function outcome(kind: string): Promise<Record<string, string>> {
    const address = kind.startsWith('http') ? service.url.replace('http://', '') : grpc
    const args = [suite, kind, address, repository.upload]
    return JSON.parse(await runClient(tritonClients?.python ?? '', args, 120_000)) as Record<string, string>
  }

  it.each([
    ['http', ['json_data']],
    ['http_aio', ['json_data']],
    ['grpc', ['streaming', 'reflection']],
    ['grpc_aio', ['streaming', 'reflection']],
  ])('%s works over the whole API', { timeout: 150_000 }, async (kind, own) => {
    expect(await outcome(kind)).toEqual(Object.fromEntries([...checks, ...own].map((name) => [name, 'ok'])))
  })
})
