import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { addModel } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const names = ['a', 'b', 'c']
const io = (way: string) => `${way} { name: "${way[0]}" data_type: TYPE_FP32 dims: [ 1 ] }`

/** Models that tell when their load begins and ends. Each ends once so many have begun, and after a while that others could use. */
function tellingModels(together: number): Readonly<{ repository: string; told: () => readonly string[] }> {
  const repository = tempDir()
  const log = join(tempDir(), 'log')
  writeFileSync(log, '')
  for (const name of names) {
    const config = `backend: "js" instance_group { count: 1 kind: KIND_CPU } ${io('input')} ${io('output')}`
    addModel(repository, name, { config })
    const dir = join(repository, name, '1')
    mkdirSync(dir, { recursive: true })
    writeFileSync(
      join(dir, 'model.mjs'),
      `import { appendFileSync, readFileSync } from 'node:fs'
       import { setTimeout as pause } from 'node:timers/promises'
       appendFileSync('${log}', 'begin\\n')
       const begun = () => readFileSync('${log}', 'utf8').split('begin').length - 1
       do await pause(200); while (begun() < ${together})
       appendFileSync('${log}', 'end\\n')
       export default () => ({ execute: ({ inputs }) => ({ o: inputs.i }) })`,
    )
  }
  return { repository, told: () => readFileSync(log, 'utf8').trim().split('\n') }
}

async function serving(repository: string, models: Readonly<Record<string, unknown>>): Promise<TestService> {
  const service = await TestService.start({
    pipeline: {
      engines: 0,
      models: { repository, allowJsBackends: true, ...models },
      modelServer: { enabled: true, probe: { enabled: false } },
    },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  return service
}

const areReady = (service: TestService, count: number) =>
  until('the models', async () => (await service.ready()).modelServer?.models.ready === count, 60_000)

async function loadAll(service: TestService): Promise<readonly number[]> {
  await until('the model server', async () => (await service.ready()).modelServer?.state === 'ready', 60_000)
  const load = (name: string) => service.fetch(`/v2/repository/models/${name}/load`, { method: 'POST' })
  const answers = await Promise.all(names.map(load))
  return answers.map(({ status }) => status)
}

const oneByOne = names.flatMap(() => ['begin', 'end'])

it('models.loadsAtATime: 3 has three models load side by side, which wait for each other here, at the start', async () => {
  const { repository, told } = tellingModels(3)
  const service = await serving(repository, { loadsAtATime: 3 })
  await areReady(service, 3)
  expect(told().slice(0, 3)).toEqual(['begin', 'begin', 'begin'])
}, 180_000)

it('and so where clients ask for them at once', async () => {
  const { repository, told } = tellingModels(3)
  const service = await serving(repository, { loadsAtATime: 3, control: 'explicit' })
  expect(await loadAll(service)).toEqual([200, 200, 200])
  expect(told().slice(0, 3)).toEqual(['begin', 'begin', 'begin'])
}, 180_000)

it('models.loadsAtATime: 1 has them load one after another at the start', async () => {
  const { repository, told } = tellingModels(1)
  const service = await serving(repository, { loadsAtATime: 1 })
  await areReady(service, 3)
  expect(told()).toEqual(oneByOne)
}, 180_000)

it('and so where clients ask for them at once, each of which is answered', async () => {
  const { repository, told } = tellingModels(1)
  const service = await serving(repository, { loadsAtATime: 1, control: 'explicit' })
  expect(await loadAll(service)).toEqual([200, 200, 200])
  expect(told()).toEqual(oneByOne)
}, 180_000)
