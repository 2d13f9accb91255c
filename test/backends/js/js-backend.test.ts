import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { readModel } from '../../../src/repository/model-definition.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { JsBackend } from '../../../src/backends/js/js-backend.js'
import { contextOf, fp32, requestOf, scheduled, valuesOf } from '../../support/direct-model.js'
import { tempDir } from '../../support/temp-dir.js'

const io = `input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`

async function serve(code: string, config = io, backend = new JsBackend(true)) {
  const versionDir = join(tempDir(), 'm', '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.mjs'), code)
  const context = contextOf('m', parseModelConfig(config, 'config.pbtxt'), versionDir)
  const model = await scheduled(await backend.open(context), context)
  onTestFinished(() => model.stop(5_000))
  return model
}

const x = (...values: number[]) => requestOf([fp32('x', [values.length], values)])

it('the example turns each row of logits into probabilities', async () => {
  const repository = fileURLToPath(new URL('../../../examples/js-backend/models', import.meta.url))
  const { config, folder } = readModel(repository, 'softmax')
  const context = contextOf('softmax', config, join(folder.dir, '1'))
  const model = await scheduled(await new JsBackend(true).open(context), context)
  onTestFinished(() => model.stop(5_000))
  const [probabilities] = await model.infer(requestOf([fp32('logits', [2, 2], [0, 0, 0, Math.log(3)])]))
  expect(probabilities?.shape).toEqual([2, 2])
  valuesOf(probabilities).forEach((value, index) =>
    expect(value).toBeCloseTo([0.5, 0.5, 0.25, 0.75][index] ?? 0, 5),
  )
})

it('a model that computes for long does not hold up the loop', async () => {
  const model = await serve(
    `export default () => ({ execute({ inputs }) {
       const { data, shape } = inputs.x
       if (data[0] === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
       return { y: { shape, data } }
     } })`,
  )
  let turns = 0
  const timer = setInterval(() => (turns += 1), 1)
  const [y] = await model.infer(x(1, 2))
  clearInterval(timer)
  expect(valuesOf(y)).toEqual([1, 2])
  expect(turns).toBeGreaterThan(10)
})

it('gives and takes BYTES as lists, and a file beside the model is within its reach', async () => {
  const config = `input { name: "name" data_type: TYPE_STRING dims: [ -1 ] } output { name: "hello" data_type: TYPE_STRING dims: [ -1 ] }`
  const model = await serve(
    `import { readFileSync } from 'node:fs'
     export default ({ versionDir }) => ({ execute({ inputs }) {
       const [word] = readFileSync(versionDir + '/model.mjs', 'utf8').split(' ')
       const data = inputs.name.data.map((name) => word + ' ' + new TextDecoder().decode(name))
       return { hello: { shape: [data.length], data } }
     } })`,
    config,
  )
  const data = Buffer.from('\u0003\0\0\0Ada\u0002\0\0\0Bo', 'latin1')
  const [hello] = await model.infer(requestOf([{ name: 'name', datatype: 'BYTES', shape: [2], data }]))
  expect(Buffer.from(hello!.data).toString('latin1')).toBe('\u000a\0\0\0import Ada\u0009\0\0\0import Bo')
})

it('answers what execute throws, goes on, and starts a thread that ended again', async () => {
  const model = await serve(
    `export default () => ({ execute({ inputs }) {
       const { data, shape } = inputs.x
       if (data[0] === 1) throw new Error('no ones, please')
       if (data[0] === 2) process.exit(3)
       return { y: { shape, data } }
     } })`,
  )
  await expect(model.infer(x(1))).rejects.toThrow('no ones, please')
  expect(valuesOf((await model.infer(x(5)))[0])).toEqual([5])
  await expect(model.infer(x(2))).rejects.toThrow(/ended/)
  expect(valuesOf((await model.infer(x(6)))[0])).toEqual([6])
})

it('ends an endless loop after its time, and answers again', async () => {
  const model = await serve(
    `export default () => ({ async execute({ inputs }) {
       const { data, shape } = inputs.x
       if (data[0] === 1) for (;;);
       if (data[0] === 2) await new Promise(() => {})
       return { y: { shape, data } }
     } })`,
    `${io} parameters { key: "gantry.timeout_ms" value { string_value: "200" } }`,
  )
  for (const endless of [1, 2]) {
    await expect(model.infer(x(endless))).rejects.toMatchObject({
      status: 'INTERNAL',
      message: expect.stringContaining('did not answer within 200 ms') as string,
    })
    expect(valuesOf((await model.infer(x(5)))[0])).toEqual([5])
  }
})

it('closes at once while its code loops', async () => {
  const loops = `for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)`
  const model = await serve(
    `export default () => ({ execute() { ${loops} } })`,
    `${io} parameters { key: "gantry.timeout_ms" value { string_value: "300" } }`,
  )
  const running = model.infer(x(1))
  const ended = expect(running).rejects.toMatchObject({ status: 'INTERNAL' })
  await model.stop(10_000)
  await ended
})

it('refuses an output of another shape than configured', async () => {
  const model = await serve(
    `export default () => ({ execute: () => ({ y: { shape: [3], data: new Float32Array(2) } }) })`,
  )
  await expect(model.infer(x(1))).rejects.toThrow("output 'y' with 8 bytes of shape [3]")
})

it.each([
  ['is not allowed', 'export default () => ({ execute() {} })', io, new JsBackend(false), 'not allowed'],
  [
    'lists no tensors',
    'export default () => ({ execute() {} })',
    '',
    new JsBackend(true),
    'must list its input and output',
  ],
  ['has no default export', 'export const a = 1', io, new JsBackend(true), 'no default export'],
  [
    'has a time that is none',
    'export default () => ({ execute() {} })',
    `${io} parameters { key: "gantry.timeout_ms" value { string_value: "never" } }`,
    new JsBackend(true),
    'gantry.timeout_ms is "never"',
  ],
  ['makes no model', 'export default () => ({})', io, new JsBackend(true), 'no object with execute()'],
  ['throws while it loads', 'throw new Error("missing weights")', io, new JsBackend(true), 'missing weights'],
])('refuses a file that %s', async (_, code, config, backend, problem) => {
  await expect(serve(code, config, backend)).rejects.toThrow(problem)
})

it('refuses a folder without the file', async () => {
  const context = contextOf('m', parseModelConfig(io, 'c'), join(tempDir(), '1'))
  await expect(new JsBackend(true).open(context)).rejects.toThrow(
    `model "m" has no file ${join(context.versionDir, 'model.js')} or ${join(context.versionDir, 'model.mjs')}`,
  )
})
