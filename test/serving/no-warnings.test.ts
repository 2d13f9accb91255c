import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { addJsModel, addModel } from '../support/onnx-models.js'
import { fp32Input, ServedRepository } from '../support/served-repository.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const tensors = `max_batch_size: 0 input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] } output { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }`
const identity = 'export default () => ({ execute: ({ inputs: { A } }) => ({ B: A }) })'
const many = 40

/** Warnings of Node in this process from here on. */
function warnings(): readonly Error[] {
  const seen: Error[] = []
  const take = (warning: Error): void => void seen.push(warning)
  process.on('warning', take)
  onTestFinished(() => void process.off('warning', take))
  return seen
}

/** They come a turn later. */
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

it('R30: a stream with many requests under way warns of nothing', async () => {
  const dir = tempDir()
  addJsModel(dir, 'm', tensors, identity)
  const seen = warnings()
  const served = await ServedRepository.of(dir, { allowJs: true })
  const stream = served.grpc.stream('ModelStreamInfer')
  let answers = 0
  stream.on('data', () => (answers += 1))
  const { name, datatype, shape, data } = fp32Input('A', [1], [1])
  for (let count = 0; count < many; count++)
    stream.write({ model_name: 'm', inputs: [{ name, datatype, shape }], raw_input_contents: [data] })
  stream.end()
  await once(stream, 'end')
  await turn()
  expect([answers, seen]).toEqual([many, []])
})

it('R30: a stream whose client does not read for long warns of nothing', async () => {
  const dir = tempDir()
  const wide = tensors.replaceAll('dims: [ 1 ]', 'dims: [ -1 ]')
  addJsModel(dir, 'm', wide, identity)
  const seen = warnings()
  const served = await ServedRepository.of(dir, { allowJs: true })
  const stream = served.grpc.stream('ModelStreamInfer')
  const size = 300_000
  const { name, datatype, shape, data } = fp32Input('A', [size], Array<number>(size).fill(1))
  for (let count = 0; count < many; count++)
    stream.write({ model_name: 'm', inputs: [{ name, datatype, shape }], raw_input_contents: [data] })
  const inferred = async () => {
    const { model_stats } = await served.grpc.call('ModelStatistics', { name: 'm' })
    return Number((model_stats as { inference_count?: number }[])[0]?.inference_count ?? 0)
  }
  await until('some that ran', async () => (await inferred()) > 10)
  let answers = 0
  stream.on('data', () => (answers += 1))
  stream.end()
  await once(stream, 'end')
  await turn()
  expect([answers, seen]).toEqual([many, []])
})

it('R30: many streams at once warn of nothing', async () => {
  const seen = warnings()
  const served = await ServedRepository.of(tempDir())
  const streams = Array.from({ length: many }, () => served.grpc.stream('ModelStreamInfer'))
  const ended = streams.map((stream) => once(stream, 'end'))
  for (const stream of streams) {
    stream.resume()
    stream.write({ model_name: 'nosuch' })
    stream.end()
  }
  await Promise.all(ended)
  await turn()
  expect(seen).toEqual([])
})

it('R30: an ensemble of many steps side by side warns of nothing', async () => {
  const dir = tempDir()
  addJsModel(dir, 'm', tensors, identity)
  const names = Array.from({ length: many }, (_, index) => `B${index}`)
  const outputs = names.map((name) => `output { name: "${name}" data_type: TYPE_FP32 dims: [ 1 ] }`)
  const steps = names.map(
    (name) =>
      `step { model_name: "m" input_map { key: "A" value: "A" } output_map { key: "B" value: "${name}" } }`,
  )
  const input = 'input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }'
  const graph = `ensemble_scheduling { ${steps.join(' ')} }`
  addModel(dir, 'e', { config: `platform: "ensemble" ${input} ${outputs.join(' ')} ${graph}` })
  const seen = warnings()
  const served = await ServedRepository.of(dir, { allowJs: true })
  for (const heard of await served.both('e', [fp32Input('A', [1], [3])]))
    expect('outputs' in heard && heard.outputs.length).toBe(many)
  await turn()
  expect(seen).toEqual([])
})

it('R30: many loads that wait for each other warn of nothing', async () => {
  const dir = tempDir()
  addJsModel(dir, 'm', tensors, identity)
  const seen = warnings()
  const served = await ServedRepository.of(dir, { allowJs: true, control: 'explicit' })
  const loads = Array.from({ length: 14 }, () =>
    fetch(`${served.url}/v2/repository/models/m/load`, { method: 'POST' }),
  )
  expect((await Promise.all(loads)).map(({ status }) => status)).toEqual(Array(14).fill(200))
  await turn()
  expect(seen).toEqual([])
})
