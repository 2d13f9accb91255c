import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientService } from '../support/client-service.js'
import { until } from '../support/until.js'
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

  it('traces of what they send can be read', async () => {
    const { service, repository } = running
    const trace = (settings: unknown) => service.send('POST', '/v2/trace/setting', settings)
    await trace({ trace_level: ['TIMESTAMPS'], trace_rate: '1', trace_count: '1' })
    const inputs = ['INPUT0', 'INPUT1'].map((name) => ({
      name,
      datatype: 'FP32',
      shape: [1, 16],
      data: Array(16).fill(1),
    }))
    await service.send('POST', '/v2/models/add_sub/infer', { inputs })
    const path = join(repository.traces, 'trace.json.0')
    const entries = await until('the trace', async () =>
      existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>[]) : undefined,
    )
    expect(entries[0]).toMatchObject({ model_name: 'add_sub', model_version: 1 })
    expect(JSON.stringify(entries)).toMatch(/HTTP_RECV_START.*REQUEST_START.*COMPUTE_END.*HTTP_SEND_END/)
    expect(await service.json('/v2/trace/setting')).toMatchObject({
      trace_count: '0',
      trace_file: 'trace.json',
    })
    await trace({ trace_level: null, trace_rate: null, trace_count: null })
  })
})
