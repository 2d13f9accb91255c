/**
 * How long the other models are away when one takes too much memory and the model server starts again without it.
 *
 *     npx tsx test/bench/model-restart.bench.ts [copies] [rounds]
 *
 * So many copies of `models/ppe_detect_video` without `dynamic_batching`; 0: `models/` as it is.
 *
 * `models away`, ms from the refusal of the request: `first` and `last` model that answers again, `half` of them, and `start`: from
 * starting the service to the last model, with all of them tried. The build must be there (`npm run build`).
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nowMs } from '../../src/lifecycle/clock.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report } from './bench.js'

const [copies = 0, rounds = 3] = process.argv.slice(2).map(Number)
const greedyOnnx = buildOnnx({
  inputs: [{ name: 'x', type: 'int64', shape: [1] }],
  outputs: [{ name: 'y', type: 'float32', shape: [] }],
  nodes: [
    { op: 'ConstantOfShape', inputs: ['x'], outputs: ['zeros'] },
    { op: 'ReduceSum', inputs: ['zeros'], outputs: ['y'], attributes: { keepdims: 0 } },
  ],
})

function fill(repository: string): readonly string[] {
  const models = fileURLToPath(new URL('../../models', import.meta.url))
  addModel(repository, 'greedy', { onnx: greedyOnnx, config: 'instance_group { kind: KIND_CPU count: 1 }' })
  if (copies === 0) {
    cpSync(models, repository, { recursive: true })
    return ['ppe', 'ppe_detect', 'ppe_detect_fp16', 'ppe_detect_int8', 'ppe_detect_video']
  }
  return Array.from({ length: copies }, (_, index) => {
    const name = `copy_${index}`
    cpSync(join(models, 'ppe_detect_video'), join(repository, name), { recursive: true })
    const config = join(repository, name, 'config.pbtxt')
    writeFileSync(
      config,
      readFileSync(config, 'utf8').replaceAll('ppe_detect_video', name).replace('dynamic_batching { }', ''),
    )
    return name
  })
}

const taken: { startMs: number; awayMs: readonly number[] }[] = []
for (let round = 0; round < rounds; round++) {
  const repository = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
  const names = fill(repository)
  const beganMs = nowMs()
  const service = await TestService.start({
    pipeline: {
      engines: 0,
      models: { repository },
      modelServer: { enabled: true, modelMemoryBytes: 2 ** 28 },
    },
  })
  const isReady = async (name: string) =>
    (await service.fetch(`/v2/models/${name}/ready`).catch(() => undefined))?.ok === true
  const allReady = () =>
    Promise.all(
      names.map(async (name) => {
        await until(name, () => isReady(name), 120_000, 10)
        return nowMs()
      }),
    )
  const pid = async () => (await service.ready()).modelServer?.pid
  try {
    const startMs = Math.max(...(await allReady())) - beganMs
    await until('greedy', () => isReady('greedy'), 60_000)
    const before = await pid()
    const answer = await service.fetch('/v2/models/greedy/infer', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs: [{ name: 'x', datatype: 'INT64', shape: [1], data: [400_000_000] }] }),
    })
    const refusedMs = nowMs()
    if (answer.status !== 503) throw new Error(await answer.text())
    await until('another process', async () => (await pid()) !== before, 30_000, 10)
    taken.push({ startMs, awayMs: (await allReady()).map((atMs) => atMs - refusedMs).sort((a, b) => a - b) })
  } finally {
    await service[Symbol.asyncDispose]()
    rmSync(repository, { recursive: true, force: true })
  }
}
const median = (figures: readonly number[]) => quantile([...figures], 0.5)
report('models away', 'ms', {
  rounds,
  first: median(taken.map(({ awayMs }) => awayMs[0]!)),
  half: median(taken.map(({ awayMs }) => median(awayMs))),
  last: median(taken.map(({ awayMs }) => awayMs.at(-1)!)),
  start: median(taken.map(({ startMs }) => startMs)),
})
