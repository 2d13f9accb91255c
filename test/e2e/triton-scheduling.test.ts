import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { perfAnalyzer } from '../support/perf-analyzer.js'
import { schedulingRepository } from '../support/scheduling-repository.js'
import { TestService } from '../support/service.js'
import { runClient, tritonClients } from '../support/triton-clients.js'
import { until } from '../support/until.js'

const suite = join(import.meta.dirname, '../clients/scheduling_suite.py')

const checks = [
  'full_queue',
  'timeouts',
  'priorities',
  'delayed',
  'order',
  'sequences',
  'sequence_state',
  'sequence_errors',
  'sequence_timeouts',
  'idle_sequence',
  'cache',
]

describe.skipIf(tritonClients === undefined)('scheduling, as the clients of Triton see it', () => {
  const repository = schedulingRepository()
  let service: TestService
  let http: string
  let grpc: string

  beforeAll(async () => {
    service = await TestService.start({
      pipeline: {
        models: { repository: repository.models, allowJsBackends: true },
        modelServer: { enabled: true },
        engines: 0,
      },
    })
    await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 120_000)
    const port = await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort, 30_000)
    http = `127.0.0.1:${service.httpPort}`
    grpc = `127.0.0.1:${port}`
  }, 180_000)

  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(repository.dir, { recursive: true, force: true })
  })

  it.each([
    ['http', []],
    ['grpc', ['sequence_stream']],
  ])(
    '%s: queues, priorities, time-outs, order, sequences and cache are those of Triton',
    { timeout: 120_000 },
    async (kind, own) => {
      const args = [suite, kind, kind === 'http' ? http : grpc, `127.0.0.1:${service.metricsPort}`]
      const said = await runClient(tritonClients?.python ?? '', [...args, repository.models], 110_000)
      expect(JSON.parse(said)).toEqual(Object.fromEntries([...checks, ...own].map((name) => [name, 'ok'])))
    },
  )

  it('counts what it rejected', async () => {
    const failures = (model: string) =>
      service.metric(
        RegExp(`nv_inference_request_failure\\{model="${model}",reason="REJECTED",version="1"\\}`),
      )
    // Three by each client.
    expect(await failures('full')).toBe(6)
    expect(await failures('delayed')).toBe(0)
  })

  it.each([
    ['sum_direct', 'http'],
    ['sum_oldest', 'grpc'],
  ])('perf_analyzer measures sequences, %s over %s', { timeout: 120_000 }, async (model, protocol) => {
    const { rows, said } = await perfAnalyzer([
      ...['-m', model, '-i', protocol, '-u', protocol === 'http' ? http : grpc],
      ...['--concurrency-range', '6', '--sequence-length', '10'],
      ...(protocol === 'grpc' ? ['--streaming'] : []),
    ])
    expect(said).not.toMatch(/error|fail/i)
    expect(Number(rows[0]?.['Inferences/Second'])).toBeGreaterThan(0)
    expect(Number(rows[0]?.['Server Compute Infer'])).toBeGreaterThan(0)
  })

  it('perf_analyzer fills the columns of the cache', { timeout: 120_000 }, async () => {
    const { rows } = await perfAnalyzer(['-m', 'cached', '-i', 'grpc', '-u', grpc])
    expect(Number(rows[0]?.['Server Cache Hit'])).toBeGreaterThan(0)
    expect(rows[0]).toHaveProperty('Server Cache Miss')
  })
})
