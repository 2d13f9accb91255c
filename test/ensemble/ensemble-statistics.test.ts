import { expect, it } from 'vitest'
import { fp32, requestOf, valuesOf } from '../support/direct-model.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { serveRepository } from '../support/real-repository.js'
import { tempDir } from '../support/temp-dir.js'

const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 2] }) as const
const double = buildOnnx({
  inputs: [tensor('x')],
  outputs: [tensor('y')],
  nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
})
const step = (model: string, from: string, to: string, [x, y] = ['x', 'y']) =>
  `step { model_name: "${model}" model_version: -1 input_map { key: "${x}" value: "${from}" } output_map { key: "${y}" value: "${to}" } }`
const ensemble = (...steps: string[]) =>
  `platform: "ensemble" max_batch_size: 4
   input { name: "in" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "out" data_type: TYPE_FP32 dims: [ 2 ] }
   ensemble_scheduling { ${steps.join(' ')} }`

async function serve() {
  const repository = tempDir()
  for (const name of ['one', 'two']) addModel(repository, name, { onnx: double, config: 'max_batch_size: 4' })
  addModel(repository, 'both', { config: ensemble(step('one', 'in', 'mid'), step('two', 'mid', 'out')) })
  addModel(repository, 'outer', {
    config: ensemble(step('both', 'in', 'mid', ['in', 'out']), step('two', 'mid', 'out')),
  })
  return serveRepository(repository)
}

const request = (model: string, rows = 1) =>
  requestOf(
    [
      fp32(
        'in',
        [rows, 2],
        Array.from({ length: 2 * rows }, (_, i) => i),
      ),
    ],
    { model },
  )
const computes = ['compute_input', 'compute_infer', 'compute_output'] as const

it('compute times of an ensemble are the sums of its steps, and its counts are those of its requests', async () => {
  const server = await serve()
  for (const rows of [1, 1, 3]) await server.infer(request('both', rows))
  const [both, one, two] = ['both', 'one', 'two'].map((name) => server.statistics(name, '')[0]!)
  for (const part of computes) {
    const { count, ns } = both!.inference[part]
    expect([part, count, ns]).toEqual([part, 3, one!.inference[part].ns + two!.inference[part].ns])
  }
  expect(both).toMatchObject({ inferenceCount: 5, executionCount: 3 })
  expect(both!.inference).toMatchObject({ success: { count: 3 }, queue: { count: 3 }, fail: { count: 0 } })
  expect(both!.batches.map(({ batchSize, computeInfer: { count } }) => [batchSize, count])).toEqual([
    [1, 2],
    [3, 1],
  ])
  const spent = computes.reduce((sum, part) => sum + both!.inference[part].ns, both!.inference.queue.ns)
  expect(both!.inference.success.ns).toBeGreaterThan(spent)
})

it('an ensemble in an ensemble gives its times to the outer one', async () => {
  const server = await serve()
  const { outputs } = await server.infer(request('outer'))
  expect(valuesOf(outputs[0])).toEqual([0, 8])
  const [outer, one, two] = ['outer', 'one', 'two'].map((name) => server.statistics(name, '')[0]!.inference)
  for (const part of computes) expect(outer![part].ns).toBe(one![part].ns + two![part].ns)
})

it('ensembles have the metrics of models', async () => {
  const server = await serve()
  await server.infer(request('both', 2))
  await expect(server.infer({ ...request('both'), inputs: [] })).rejects.toThrow('expected 1 inputs')
  const lines = (await server.metrics()).split('\n')
  const labels = 'model="both",version="1"'
  expect(lines).toEqual(
    expect.arrayContaining([
      `nv_inference_request_success{${labels}} 1`,
      `nv_inference_request_failure{model="both",reason="OTHER",version="1"} 1`,
      `nv_inference_count{${labels}} 2`,
      `nv_inference_exec_count{${labels}} 1`,
      `gantry_model_request_seconds_count{${labels}} 1`,
      `gantry_model_compute_infer_seconds_count{${labels}} 1`,
    ]),
  )
  const value = (name: string, model: string) =>
    Number(lines.find((line) => line.startsWith(`${name}{model="${model}"`))?.split(' ')[1])
  const infer = 'gantry_model_compute_infer_seconds_sum'
  expect(value(infer, 'both')).toBeCloseTo(value(infer, 'one') + value(infer, 'two'), 8)
})
