/**
 * What a run costs by the C API against the binding for Node, on the CPU, in alternating rounds of one run: a model that computes nothing,
 * with small and large inputs and outputs, and a detector. Outputs are written into tensors that are given, as for cameras, or made anew, as
 * for API clients. Prints one JSON line for each: the median of a run in microseconds by either way, and their ratio.
 *
 *   npx tsx test/bench/c-api.bench.ts [MODEL.onnx]
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import ort from 'onnxruntime-node'
import { CSession } from '../../src/backends/onnxruntime/c-api/c-session.js'
import { type OrtApi, ortApi } from '../../src/backends/onnxruntime/c-api/ort-api.js'
import { emptyTensor } from '../../src/backends/onnxruntime/ort-tensor.js'
import type { OrtSession, Tensors } from '../../src/backends/onnxruntime/session.js'
import { buildOnnx } from '../support/onnx-builder.js'

const rounds = 15
const roundMs = 200
/** Of a detector that leaves its size open. */
const freeSizePx = 416

const api = ortApi()
if (typeof api === 'string') throw new Error(api)

function openC(given: OrtApi, path: string): OrtSession {
  return CSession.open(given, {
    model: path,
    deviceId: 0,
    prepare: (options) => {
      given.call('SetIntraOpNumThreads', options, 1)
      given.call('AddSessionConfigEntry', options, 'session.intra_op.allow_spinning', '0')
    },
    runConfig: {},
    memory: undefined,
    replays: false,
  })
}

/** Median of a run in one round, in microseconds. */
async function round(
  session: OrtSession,
  feeds: Tensors,
  fetches: readonly string[] | Tensors,
): Promise<number> {
  const times: number[] = []
  const endMs = performance.now() + roundMs
  while (performance.now() < endMs) {
    const beganMs = performance.now()
    await session.run(feeds, fetches)
    times.push((performance.now() - beganMs) * 1_000)
  }
  return median(times)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

async function compare(title: string, path: string, feeds: Tensors): Promise<void> {
  const node: OrtSession = await ort.InferenceSession.create(path, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    extra: { 'session.intra_op.allow_spinning': '0' },
  })
  const c = openC(api as OrtApi, path)
  const names = node.outputMetadata.map(({ name }) => name)
  const outputs = await node.run(feeds, names)
  const given = Object.fromEntries(
    names.map((name) => [name, emptyTensor(outputs[name]!.type, outputs[name]!.dims)]),
  )
  for (const [fetched, fetches] of [
    ['made', names],
    ['given', given],
  ] as const) {
    const results: { node: number[]; c: number[] } = { node: [], c: [] }
    await round(node, feeds, fetches)
    await round(c, feeds, fetches)
    for (let at = 0; at < rounds; at++) {
      results.node.push(await round(node, feeds, fetches))
      results.c.push(await round(c, feeds, fetches))
    }
    const [nodeUs, cUs] = [median(results.node), median(results.c)]
    const ratios = results.node.map((us, index) => results.c[index]! / us)
    const line = {
      title,
      outputs: fetched,
      nodeUs: Math.round(nodeUs * 10) / 10,
      cUs: Math.round(cUs * 10) / 10,
      ratio: Math.round(median(ratios) * 1_000) / 1_000,
      load: loadavg()[0],
    }
    process.stdout.write(`${JSON.stringify(line)}\n`)
  }
  await node.release()
  await c.release()
}

const dir = mkdtempSync(join(tmpdir(), 'c-api-'))
try {
  const path = join(dir, 'identity.onnx')
  const tensor = { type: 'float32', shape: ['n'] } as const
  writeFileSync(
    path,
    buildOnnx({
      inputs: [{ name: 'in', ...tensor }],
      outputs: [{ name: 'out', ...tensor }],
      nodes: [{ op: 'Identity', inputs: ['in'], outputs: ['out'] }],
    }),
  )
  for (const elements of [4, 250_000, 1_250_000])
    await compare(`identity of ${elements * 4} bytes`, path, {
      in: new ort.Tensor('float32', new Float32Array(elements), [elements]),
    })
  const detector = process.argv[2] ?? 'models/ppe_detect/1/model.onnx'
  if (existsSync(detector)) {
    const session = await ort.InferenceSession.create(detector)
    const [input] = session.inputMetadata
    if (input?.isTensor !== true) throw new Error('the model has no tensor as its input')
    const dims = input.shape.map((size, at) => (typeof size === 'number' ? size : at === 0 ? 1 : freeSizePx))
    const feeds = { [input.name]: emptyTensor(input.type, dims) }
    await session.release()
    await compare(detector, detector, feeds)
  }
} finally {
  rmSync(dir, { recursive: true })
}
