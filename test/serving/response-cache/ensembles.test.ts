import { expect, it } from 'vitest'
import { MemoryResponseCache } from '../../../src/serving/response-cache/memory-response-cache.js'
import { fp32, requestOf, valuesOf } from '../../support/direct-model.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { tempDir } from '../../support/temp-dir.js'

const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 2] }) as const
const model = (op: 'Add' | 'Mul') =>
  buildOnnx({
    inputs: [tensor('x')],
    outputs: [tensor('y')],
    nodes: [{ op, inputs: ['x', 'x'], outputs: ['y'] }],
  })
const step = (name: string, from: string, to: string, [x, y] = ['x', 'y']) =>
  `step { model_name: "${name}" input_map { key: "${x}" value: "${from}" } output_map { key: "${y}" value: "${to}" } }`
const ensemble = (steps: string, more = '') =>
  `platform: "ensemble" max_batch_size: 4 ${more}
   input { name: "in" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "out" data_type: TYPE_FP32 dims: [ 2 ] }
   ensemble_scheduling { ${steps} }`
const both = step('one', 'in', 'mid') + step('two', 'mid', 'out')
const cached = 'response_cache { enable: true }'

async function serve(steps: Readonly<{ one?: string }>, ...ensembles: [name: string, config: string][]) {
  const repository = tempDir()
  addModel(repository, 'one', { onnx: model('Add'), config: `max_batch_size: 4 ${steps.one ?? ''}` })
  addModel(repository, 'two', { onnx: model('Add'), config: 'max_batch_size: 4' })
  for (const [name, config] of ensembles) addModel(repository, name, { config })
  const cache = new MemoryResponseCache(100_000)
  return { repository, server: await serveRepository(repository, { cache, control: 'explicit' }) }
}

type Server = Awaited<ReturnType<typeof serve>>['server']
const ask = async (server: Server, name: string, value = 3) =>
  valuesOf((await server.infer(requestOf([fp32('in', [1, 2], [value, 0])], { model: name }))).outputs[0])

/** Counts of [success, cache_hit, cache_miss, compute_infer], and items inferred. */
function counts(server: Server, name: string): readonly number[] {
  const { inference, inferenceCount } = server.statistics(name, '')[0]!
  const { success, cache_hit, cache_miss, compute_infer } = inference
  return [success, cache_hit, cache_miss, compute_infer].map(({ count }) => count).concat(inferenceCount)
}

it('an ensemble with a response cache answers what it was asked before without a run of its steps', async () => {
  const { server } = await serve({}, ['both', ensemble(both, cached)])
  expect([await ask(server, 'both'), await ask(server, 'both')]).toEqual([
    [12, 0],
    [12, 0],
  ])
  expect(counts(server, 'both')).toEqual([2, 1, 1, 1, 1])
  expect(counts(server, 'one')).toEqual([1, 0, 0, 1, 1])
  await ask(server, 'both', 4)
  expect(counts(server, 'both')).toEqual([3, 1, 2, 2, 2])
  const { success, cache_miss } = server.statistics('both', '')[0]!.inference
  expect(success.ns).toBeGreaterThan(cache_miss.ns)
})

it('an ensemble without a cache uses that of a step, and a cached one has its own beside it', async () => {
  const { server } = await serve({ one: cached }, ['plain', ensemble(both)], ['kept', ensemble(both, cached)])
  await ask(server, 'plain')
  expect(await ask(server, 'kept')).toEqual([12, 0])
  expect(counts(server, 'kept')).toEqual([1, 0, 1, 1, 1])
  expect(counts(server, 'one')).toEqual([2, 1, 1, 1, 1])
  expect(counts(server, 'two')).toEqual([2, 0, 0, 2, 2])
})

it('an ensemble does not answer from its cache for a step that was replaced, also in an ensemble in it', async () => {
  const outer = ensemble(step('both', 'in', 'out', ['in', 'out']), cached)
  const { repository, server } = await serve({}, ['both', ensemble(both)], ['outer', outer])
  expect(await ask(server, 'outer')).toEqual([12, 0])
  addModel(repository, 'one', { onnx: model('Mul'), config: 'max_batch_size: 4' })
  await server.load('one', { config: undefined, files: new Map() })
  expect(await ask(server, 'outer')).toEqual([18, 0])
})

it('a failure says in which ensembles it was, and is not kept', async () => {
  const repository = tempDir()
  const any = (name: string) => ({ name, type: 'float32', shape: ['batch', 'n'] }) as const
  const pairs = buildOnnx({
    inputs: [any('x')],
    outputs: [any('y')],
    nodes: [{ op: 'Add', inputs: ['x', 'pair'], outputs: ['y'] }],
    constants: [{ name: 'pair', shape: [2], data: Float32Array.of(1, 1) }],
  })
  addModel(repository, 'pairs', { onnx: pairs, config: 'max_batch_size: 4' })
  const wide = (steps: string) => ensemble(steps, cached).replaceAll('[ 2 ]', '[ -1 ]')
  addModel(repository, 'inner', { config: wide(step('pairs', 'in', 'out')) })
  addModel(repository, 'outer', { config: wide(step('inner', 'in', 'out', ['in', 'out'])) })
  const server = await serveRepository(repository, { cache: new MemoryResponseCache(100_000) })
  const threes = requestOf([fp32('in', [1, 3], [0, 0, 0])], { model: 'outer' })
  for (let i = 0; i < 2; i++)
    await expect(server.infer(threes)).rejects.toThrow(/^in ensemble 'outer', in ensemble 'inner', .*Add/s)
  expect(server.statistics('pairs', '')[0]!.inference.fail.count).toBe(2)
  const lines = (await server.metrics()).split('\n')
  expect(lines).toContain('nv_inference_request_failure{model="outer",reason="OTHER",version="1"} 2')
  expect(lines).toContain('nv_inference_request_failure{model="pairs",reason="BACKEND",version="1"} 2')
})

it('an ensemble goes with a model that one of its ensembles runs, and is back with it', async () => {
  const outer = ensemble(step('both', 'in', 'out', ['in', 'out']))
  const { server } = await serve({}, ['both', ensemble(both)], ['outer', outer])
  await server.unload('one', false)
  await expect(ask(server, 'outer')).rejects.toThrow(/^Request for unknown model: 'outer'/)
  await server.load('one', { config: undefined, files: new Map() })
  expect(await ask(server, 'outer')).toEqual([12, 0])
})
