import { expect, it } from 'vitest'
import type { LevelResult, RequestSplit } from '../../../src/tools/perf/measure-level.js'
import { perfCsv } from '../../../src/tools/perf/perf-csv.js'

const latencyUs = { mean: 10, min: 1, p50: 1_000.6, p90: 2_000, p95: 3_000, p99: 4_000, max: 5_000 }
const server = { queue: 1.5, computeInput: 2, computeInfer: 3, computeOutput: 4 }
const split = (more: Partial<RequestSplit> = {}) => ({
  clientWait: 1,
  clientSend: 10,
  network: 20,
  server,
  clientReceive: 5,
  ...more,
})
const level = (
  number: number,
  inferencesPerSecond: number,
  splitUs: RequestSplit = split(),
): LevelResult => ({
  level: number,
  steady: true,
  cutShort: false,
  windows: 3,
  seconds: 3,
  requests: 3,
  errors: 0,
  clientCores: 0.1,
  inferencesPerSecond,
  latencyUs,
  splitUs,
})

it('has the columns of perf_analyzer, rows by throughput', () => {
  expect(perfCsv({ load: { kind: 'concurrency' }, levels: [level(1, 100.12345), level(2, 50)] })).toBe(
    'Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,' +
      'Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n' +
      '2,50,11,20,1,2,3,4,5,1000,2000,3000,4000\n1,100.123,11,20,1,2,3,4,5,1000,2000,3000,4000\n',
  )
})

it('has those of a response cache where there is one', () => {
  const cached = split({ server: { ...server, cacheHit: 6, cacheMiss: 7 } })
  const text = perfCsv({ load: { kind: 'rate' }, levels: [level(1, 1, cached), level(2, 2)] })
  expect(text).toMatch(
    /^Request Rate,.*Server Compute Output,Server Cache Hit,Server Cache Miss,Client Recv,/,
  )
  expect(text).toContain('1,1,11,20,1,2,3,4,6,7,5,')
  expect(text).toContain('2,2,11,20,1,2,3,4,0,0,5,')
})

it('leaves the server out where it has no statistics', () => {
  const text = perfCsv({ load: { kind: 'cameras' }, levels: [level(1, 1, split({ server: undefined }))] })
  expect(text).toBe(
    'Cameras,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n1,1,11,5,1000,2000,3000,4000\n',
  )
})
