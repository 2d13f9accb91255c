import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { onnxRuntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.js'
import type { InferRequest } from '../../src/runtime/infer.js'
import { createScheduledModel } from '../../src/runtime/create-scheduled-model.js'
import type { ScheduledModel } from '../../src/runtime/scheduled-model.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { silentLog } from '../support/silent-log.js'
import { quantile, report } from './bench.js'

/**
 * Dynamic batching on and off, in alternating rounds, for a model where it pays on CPU: large fully connected layers, whose
 * weights are read from memory once in a run, however many items are in it.
 *
 * Then a model of a few microseconds, to see what the scheduler and the way to a thread cost.
 */
const layers = 4
const width = 2048
const maxBatchSize = 32
const roundMs = 4_000
const rounds = 3

const dir = mkdtempSync(join(tmpdir(), 'gantry-bench-'))

function fullyConnected(): Uint8Array {
  const weights = new Float32Array(width * width).map((_, index) => ((index * 7919) % 13) / width / 13)
  const names = Array.from({ length: layers }, (_, index) => String(index))
  return buildOnnx({
    inputs: [{ name: 'x0', type: 'float32', shape: ['n', width] }],
    outputs: [{ name: `x${layers}`, type: 'float32', shape: ['n', width] }],
    nodes: names.map((name, index) => ({
      op: 'MatMul',
      inputs: [`x${index}`, `w${name}`],
      outputs: [`x${index + 1}`],
    })),
    constants: names.map((name) => ({ name: `w${name}`, shape: [width, width], data: weights })),
  })
}

function tiny(): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'x0', type: 'float32', shape: ['n', 256] }],
    outputs: [{ name: 'y', type: 'float32', shape: ['n', 256] }],
    nodes: [{ op: 'Add', inputs: ['x0', 'x0'], outputs: ['y'] }],
  })
}

async function load(name: string, onnx: Uint8Array, text: string, batching = true): Promise<ScheduledModel> {
  const modelDir = join(dir, name)
  const versionDir = join(modelDir, '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), onnx)
  const log = silentLog()
  const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })
  const config = parseModelConfig(text, 'config.pbtxt')
  const opened = await backend.open({ name, version: '1', config, versionDir, log })
  const { dynamic_batching: _, ...unbatched } = opened.config
  const statistics = new StatisticsRecorder(name, '1')
  return createScheduledModel(batching ? opened : { ...opened, config: unbatched }, {
    name,
    version: '1',
    modelDir,
    statistics,
    log,
    onHung: (reason) => {
      throw new Error(reason)
    },
  })
}

function requestOf(model: string, size: number): InferRequest {
  const data = new Uint8Array(new Float32Array(size).fill(0.5).buffer)
  return {
    model,
    version: '',
    id: '',
    inputs: [{ name: 'x0', datatype: 'FP32', shape: [1, size], data }],
    outputs: [],
    priority: 0,
    timeoutUs: 0,
    sequence: undefined,
    parameters: {},
    signal: undefined,
  }
}

type Figures = { requests: number; ms: number; latencies: number[] }

/** Clients that each wait for their answer before they ask again. */
async function drive(
  model: ScheduledModel,
  request: InferRequest,
  clients: number,
  into: Figures,
): Promise<void> {
  const startedMs = nowMs()
  const client = async () => {
    while (nowMs() - startedMs < roundMs) {
      const sentMs = nowMs()
      await model.infer(request)
      into.latencies.push(nowMs() - sentMs)
      into.requests += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  into.ms += nowMs() - startedMs
}

function tell(name: string, clients: number, { requests, ms, latencies }: Figures): number {
  const perSecond = (requests / ms) * 1e3
  report(name, 'requests/s', {
    perSecond,
    p50Ms: quantile(latencies, 0.5),
    p95Ms: quantile(latencies, 0.95),
    p99Ms: quantile(latencies, 0.99),
    clients,
    n: requests,
  })
  return perSecond
}

async function compare(instances: number, clients: number): Promise<void> {
  const base = `max_batch_size: ${maxBatchSize} instance_group { kind: KIND_CPU count: ${instances} }`
  const onnx = fullyConnected()
  const on = await load('fc_on', onnx, `${base} dynamic_batching { max_queue_delay_microseconds: 2000 }`)
  const off = await load('fc_off', onnx, base, false)
  const figures = { on: { requests: 0, ms: 0, latencies: [] }, off: { requests: 0, ms: 0, latencies: [] } }
  for (let round = 0; round < rounds; round++) {
    await drive(off, requestOf('fc_off', width), clients, figures.off)
    await drive(on, requestOf('fc_on', width), clients, figures.on)
  }
  const label = `${layers} layers of ${width}x${width}, ${instances} instance(s)`
  const without = tell(`${label}, batching off`, clients, figures.off)
  const withBatches = tell(`${label}, batching on`, clients, figures.on)
  const { executionCount, inferenceCount } = on.statistics()
  report(`${label}, gain`, 'x', {
    throughput: withBatches / without,
    meanBatch: inferenceCount / executionCount,
  })
  await Promise.all([on.stop(1_000), off.stop(1_000)])
}

async function small(clients: number): Promise<void> {
  const model = await load(
    'tiny',
    tiny(),
    'max_batch_size: 0 input { name: "x0" data_type: TYPE_FP32 dims: [ -1, 256 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1, 256 ] } instance_group { kind: KIND_CPU count: 1 }',
  )
  const figures = { requests: 0, ms: 0, latencies: [] }
  await drive(model, requestOf('tiny', 256), clients, { requests: 0, ms: 0, latencies: [] })
  await drive(model, requestOf('tiny', 256), clients, figures)
  tell('1 KB tensor through scheduler and thread, 1 instance', clients, figures)
  await model.stop(1_000)
}

try {
  await compare(1, 2 * maxBatchSize)
  await small(1)
  await small(8)
} finally {
  rmSync(dir, { recursive: true, force: true })
}
