import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientService } from '../support/client-service.js'
import { FakeNvidiaSmi, h100 } from '../support/fake-nvidia-smi.js'
import { perfAnalyzer, type PerfRow } from '../support/perf-analyzer.js'
import { tritonClients } from '../support/triton-clients.js'

const serverColumns = [
  'Server Queue',
  'Server Compute Input',
  'Server Compute Infer',
  'Server Compute Output',
] as const

type Json = Readonly<Record<string, unknown>>

describe.skipIf(tritonClients === undefined)('perf_analyzer, unmodified', () => {
  let running: ClientService
  let smi: FakeNvidiaSmi

  beforeAll(async () => {
    smi = new FakeNvidiaSmi(mkdtempSync(join(tmpdir(), 'gantry-smi-')), h100.row)
    running = await ClientService.start({ PATH: smi.path })
  }, 180_000)

  afterAll(async () => {
    await running?.[Symbol.asyncDispose]()
    rmSync(smi.dir, { recursive: true, force: true })
  })

  const over = (protocol: string, model: string): string[] => [
    ...['-m', model, '-i', protocol],
    ...['-u', protocol === 'http' ? running.http : running.grpc],
  ]

  const json = async (path: string): Promise<Json> =>
    (await (await fetch(`http://${running.http}/v2/${path}`)).json()) as Json

  function expectFilled(row: PerfRow | undefined): void {
    expect(Number(row?.['Inferences/Second'])).toBeGreaterThan(0)
    for (const column of serverColumns)
      expect(row, column).toHaveProperty(column, expect.stringMatching(/^\d+$/))
    expect(Number(row?.['Server Compute Infer'])).toBeGreaterThan(0)
  }

  it.each(['http', 'grpc'])(
    'measures a model over %s at concurrency 1, 4 and 7',
    { timeout: 150_000 },
    async (protocol) => {
      const { rows, said } = await perfAnalyzer([
        ...over(protocol, 'add_sub'),
        '--concurrency-range',
        '1:7:3',
      ])
      expect(rows.map((row) => Number(row['Concurrency'])).sort((a, b) => a - b)).toEqual([1, 4, 7])
      rows.forEach(expectFilled)
      expect(said).not.toMatch(/error|warning|fail/i)
    },
  )

  it.each(['http', 'grpc'])(
    'measures the ensemble over %s, each of its steps as well',
    { timeout: 150_000 },
    async (protocol) => {
      const args = [...over(protocol, 'ppe'), '--shape', 'image:320,320,3', '--concurrency-range', '1:8:7']
      const { rows, said } = await perfAnalyzer([...args, '--measurement-request-count', '10'])
      expect(rows).toHaveLength(2)
      for (const row of rows) expect(Number(row['Inferences/Second'])).toBeGreaterThan(0)
      for (const step of ['letterbox', 'ppe_detect_video', 'detection_head'])
        expect(said).toContain(`${step}, version: `)
      expect(said).not.toMatch(/error|warning|fail/i)
    },
  )

  it('measures a stream, which keeps its order', { timeout: 150_000 }, async () => {
    const { rows } = await perfAnalyzer([
      ...over('grpc', 'add_sub'),
      '--streaming',
      '--async',
      '--concurrency-range',
      '4',
    ])
    expectFilled(rows[0])
  })

  it('takes what the analyzer compresses', { timeout: 150_000 }, async () => {
    const { rows } = await perfAnalyzer([...over('grpc', 'add_sub'), '--grpc-compression-algorithm', 'gzip'])
    expectFilled(rows[0])
  })

  describe('traps', () => {
    it('1: the shape of the metadata has the batch dimension, dims of the configuration do not', async () => {
      const [metadata, config] = [await json('models/add_sub'), await json('models/add_sub/config')]
      expect(metadata).toMatchObject({ inputs: [{ shape: [-1, 16] }, { shape: [-1, 16] }] })
      expect(config).toMatchObject({ max_batch_size: 8, input: [{ dims: [16] }, { dims: [16] }] })
    })

    it('2: statistics have all eight durations, counts and a version that is text, even before the first request', async () => {
      const { model_stats } = await json('models/spare/stats')
      const duration = { count: expect.any(Number) as number, ns: expect.any(Number) as number }
      const parts = [
        'success',
        'fail',
        'queue',
        'compute_input',
        'compute_infer',
        'compute_output',
        'cache_hit',
        'cache_miss',
      ]
      expect(model_stats).toMatchObject([
        {
          version: '1',
          inference_count: expect.any(Number) as number,
          execution_count: expect.any(Number) as number,
          inference_stats: Object.fromEntries(parts.map((part) => [part, duration])),
        },
      ])
    })

    it('3: compute counts are the same, so that the report is written', { timeout: 60_000 }, async () => {
      await perfAnalyzer([...over('http', 'add_sub'), '--concurrency-range', '4'])
      const { model_stats } = await json('models/add_sub/stats')
      const [stats] = model_stats as readonly [{ inference_stats: Record<string, { count: number }> }]
      const counts = ['compute_input', 'compute_infer', 'compute_output'].map(
        (part) => stats.inference_stats[part]?.count,
      )
      expect(counts[0]).toBeGreaterThan(0)
      expect(new Set(counts).size).toBe(1)
    })

    it(
      '4: without a response cache the times of its hits and misses are 0',
      { timeout: 60_000 },
      async () => {
        const { said } = await perfAnalyzer([...over('grpc', 'add_sub'), '--concurrency-range', '2'])
        expect(said).not.toContain('cache')
        const { model_stats } = await json('models/add_sub/stats')
        expect(model_stats).toMatchObject([
          { inference_stats: { cache_hit: { count: 0, ns: 0 }, cache_miss: { count: 0, ns: 0 } } },
        ])
      },
    )

    it(
      '5: metrics of a GPU have the one label gpu_uuid, a newline before and no exponent',
      { timeout: 60_000 },
      async () => {
        const text = await (await fetch(`http://${running.metrics}/metrics`)).text()
        const lines = text.split('\n').filter((one) => /^nv_(gpu|energy)/.test(one))
        expect(lines).toHaveLength(6)
        for (const line of lines) expect(line).toMatch(/^\w+\{gpu_uuid="[^"]+"\} \d+\.?\d*$/)
        const metrics = ['--collect-metrics', '--metrics-url', `${running.metrics}/metrics`, '--verbose-csv']
        const { rows } = await perfAnalyzer([...over('grpc', 'add_sub'), ...metrics])
        expectFilled(rows[0])
        expect(rows[0]).toMatchObject({
          'Avg GPU Utilization': `${h100.uuid}:0.45;`,
          'Avg GPU Power Usage': `${h100.uuid}:318.42;`,
          'Max GPU Memory Usage': `${h100.uuid}:1265631232;`,
          'Total GPU Memory': `${h100.uuid}:85520809984;`,
        })
      },
    )

    it('6: a header length in any case, any content type, and one connection for many requests', async () => {
      const body = Buffer.from(
        JSON.stringify({
          inputs: ['INPUT0', 'INPUT1'].map((name) => ({
            name,
            datatype: 'FP32',
            shape: [1, 16],
            data: Array(16).fill(1),
          })),
        }),
      )
      const types = ['application/octet-stream', 'application/json', undefined]
      const names = [
        'Inference-Header-Content-Length',
        'inference-header-content-length',
        'INFERENCE-HEADER-CONTENT-LENGTH',
      ]
      const connection = new Agent({ keepAlive: true, maxSockets: 1 })
      const ports = new Set<number | undefined>()
      for (const [index, type] of types.entries()) {
        const headers = {
          [names[index] ?? '']: body.byteLength,
          ...(type === undefined ? {} : { 'content-type': type }),
        }
        const { status, port } = await post(running.http, body, headers, connection)
        expect(status).toBe(200)
        ports.add(port)
      }
      connection.destroy()
      expect(ports.size).toBe(1)
    })

    it('7: the configuration has name, batch size and tensors that are those of the metadata, and is not decoupled', async () => {
      const names = (tensors: unknown): string[] => (tensors as { name: string }[]).map(({ name }) => name)
      for (const model of [
        'add_sub',
        'echo_float32',
        'ppe',
        'letterbox',
        'ppe_detect_video',
        'detection_head',
      ]) {
        const [metadata, config] = [await json(`models/${model}`), await json(`models/${model}/config`)]
        expect(config).toMatchObject({ name: model, max_batch_size: expect.any(Number) as number })
        expect(names(config['input'])).toEqual(names(metadata['inputs']))
        expect(names(config['output'])).toEqual(names(metadata['outputs']))
        expect(config).not.toHaveProperty('model_transaction_policy.decoupled', true)
      }
    })
  })
})

type Posted = Readonly<{ status: number | undefined; port: number | undefined }>

/** Headers exactly as given; the port of this side tells connections apart. */
function post(
  address: string,
  body: Buffer,
  headers: Readonly<Record<string, string | number>>,
  agent: Agent,
): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers: { ...headers, 'content-length': body.byteLength }, agent }
    const sent = request(`http://${address}/v2/models/add_sub/infer`, options, (answer) => {
      const port = answer.socket.localPort
      answer.resume().once('end', () => resolve({ status: answer.statusCode, port }))
    })
    sent.once('error', reject)
    sent.end(body)
  })
}
