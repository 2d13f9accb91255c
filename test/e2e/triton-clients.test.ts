import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientService } from '../support/client-service.js'
import { runClient, tritonClients } from '../support/triton-clients.js'

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
  let running: ClientService

  beforeAll(async () => {
    running = await ClientService.start()
  }, 180_000)

  afterAll(() => running[Symbol.asyncDispose]())

  async function outcome(kind: string): Promise<Record<string, string>> {
    const address = kind.startsWith('http') ? running.http : running.grpc
    const args = [suite, kind, address, running.repository.upload]
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
