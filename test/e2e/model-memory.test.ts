import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import type { IndexEntry } from '../../src/serving/model-server.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const MiB = 1024 ** 2

/** As many floats as the input says, and their sum: 100 bytes that take any amount of memory by one value. */
const greedyOnnx = buildOnnx({
  inputs: [{ name: 'x', type: 'int64', shape: [1] }],
  outputs: [{ name: 'y', type: 'float32', shape: [] }],
  nodes: [
    { op: 'ConstantOfShape', inputs: ['x'], outputs: ['zeros'] },
    { op: 'ReduceSum', inputs: ['zeros'], outputs: ['y'], attributes: { keepdims: 0 } },
  ],
})

const meekOnnx = buildOnnx({
  inputs: [{ name: 'x', type: 'float32', shape: [4] }],
  outputs: [{ name: 'y', type: 'float32', shape: [4] }],
  nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
})

const one = 'instance_group { kind: KIND_CPU count: 1 }'

async function running(models: Record<string, unknown>, limitBytes = 384 * MiB) {
  const repository = tempDir()
  addModel(repository, 'greedy', { onnx: greedyOnnx, config: one })
  addModel(repository, 'meek', { onnx: meekOnnx, config: one })
  const service = await TestService.start({
    pipeline: {
      engines: 0,
      models: { repository, ...models },
      modelServer: { enabled: true, modelMemoryBytes: limitBytes },
    },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  await until('the server', async () => (await service.fetch('/v2/health/live')).ok, 30_000)
  return { service, repository }
}

const post = (service: TestService, path: string, body: unknown = {}) =>
  service.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const greedy = (service: TestService, floats: number) =>
  post(service, '/v2/models/greedy/infer', {
    inputs: [{ name: 'x', datatype: 'INT64', shape: [1], data: [floats] }],
  })

const meek = (service: TestService) =>
  post(service, '/v2/models/meek/infer', {
    inputs: [{ name: 'x', datatype: 'FP32', shape: [4], data: [1, 2, 3, 4] }],
  })

const answers = (service: TestService, withinMs = 30_000) =>
  until('the other model', async () => (await meek(service).catch(() => undefined))?.status === 200, withinMs)

/** Models load side by side: that one answers says nothing of the other. */
const bothAnswer = async (service: TestService) => {
  await answers(service)
  await until(
    'greedy',
    async () => (await greedy(service, 10).catch(() => undefined))?.status === 200,
    30_000,
  )
}

async function indexOf(service: TestService, name: string): Promise<IndexEntry | undefined> {
  const index = await service.json<IndexEntry[]>('/v2/repository/index', { method: 'POST' })
  return index.find((entry) => entry.name === name)
}

async function modelServerPid(service: TestService): Promise<number> {
  return (await service.ready()).modelServer?.pid ?? 0
}

it('S11: a model that takes more memory than it may is held out, and the others answer again', async () => {
  // As clients load them: what they had loaded is there again too, without being in the configuration.
  const { service } = await running({ control: 'explicit' })
  for (const name of ['greedy', 'meek'])
    expect((await post(service, `/v2/repository/models/${name}/load`)).status).toBe(200)
  await bothAnswer(service)
  const before = await modelServerPid(service)

  const refused = await greedy(service, 400_000_000)
  const beganMs = performance.now()
  expect(refused.status).toBe(503)
  expect(await refused.text()).toMatch(/'greedy'.*384 MiB.*modelServer\.modelMemoryBytes/)
  await until('another process', async () => (await modelServerPid(service)) !== before)
  await answers(service)
  const tookMs = performance.now() - beganMs
  expect(tookMs).toBeLessThan(await service.boundMs(5_000, tookMs))

  expect(await indexOf(service, 'greedy')).toMatchObject({
    state: 'UNAVAILABLE',
    reason: expect.stringMatching(/more memory than the 384 MiB/) as string,
  })
  expect((await greedy(service, 10)).status).not.toBe(200)
  expect((await service.fetch('/v2/health/ready')).status).toBe(200)

  // Killed for another reason, it does not come back either.
  const second = await modelServerPid(service)
  process.kill(second, 'SIGKILL')
  await until('a third process', async () => (await modelServerPid(service)) !== second)
  await answers(service)
  expect(await indexOf(service, 'greedy')).toMatchObject({ state: 'UNAVAILABLE' })

  expect((await post(service, '/v2/repository/models/greedy/load')).status).toBe(200)
  expect((await greedy(service, 10)).status).toBe(200)
})

it('S11: memory that a model took below its limit is given back', async () => {
  const { service } = await running({}, 2048 * MiB)
  await bothAnswer(service)
  const pid = await modelServerPid(service)
  const residentMiB = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  const beforeMiB = residentMiB()
  expect((await greedy(service, 250_000_000)).status).toBe(200)
  expect(residentMiB()).toBeGreaterThan(beforeMiB + 900)
  await until('the memory back', () => residentMiB() < beforeMiB + 200, 15_000)
  expect(await modelServerPid(service)).toBe(pid)
  expect((await greedy(service, 10)).status).toBe(200)
})

it('S11: more instances than a model may have are refused, by file and by request, and few are not started at once', async () => {
  const { service, repository } = await running({ control: 'explicit', load: ['meek'] })
  await answers(service)
  addModel(repository, 'crowd', { onnx: meekOnnx, config: 'instance_group { kind: KIND_CPU count: 20000 }' })
  const refused = [
    await post(service, '/v2/repository/models/crowd/load'),
    await post(service, '/v2/repository/models/meek/load', {
      parameters: { config: JSON.stringify({ instance_group: [{ kind: 'KIND_CPU', count: 20_000 }] }) },
    }),
  ]
  for (const answer of refused) {
    expect(answer.ok).toBe(false)
    expect(await answer.text()).toMatch(/20000 instances.*write at most 256/)
  }
  const pid = await modelServerPid(service)
  const load = post(service, '/v2/repository/models/greedy/load', {
    parameters: { config: JSON.stringify({ instance_group: [{ kind: 'KIND_CPU', count: 32 }] }) },
  })
  const beganMs = performance.now()
  let isLoaded = false
  void load.finally(() => (isLoaded = true))
  let longestMs = 0
  while (!isLoaded) {
    const askedMs = performance.now()
    expect((await meek(service)).status).toBe(200)
    longestMs = Math.max(longestMs, performance.now() - askedMs)
  }
  expect((await load).status).toBe(200)
  // Started side by side they held the loop for a quarter of the time that they took.
  expect(longestMs).toBeLessThan((performance.now() - beganMs) / 6)
  expect(await modelServerPid(service)).toBe(pid)
})

it('R28: a model that is at work each time the process is killed from outside is held out after three', async () => {
  const { service } = await running({}, 2048 * MiB)
  await answers(service)
  for (let kills = 0; kills < 3; kills++) {
    const pid = await modelServerPid(service)
    const status = () => readFileSync(`/proc/${pid}/status`, 'utf8')
    const residentMiB = () => Number(/VmRSS:\s+(\d+)/.exec(status())?.[1]) / 1024
    await until(
      'the model',
      async () => (await greedy(service, 10).catch(() => undefined))?.status === 200,
      20_000,
    )
    const beforeMiB = residentMiB()
    const cut = greedy(service, 300_000_000).catch(() => undefined)
    // What the kernel does where memory runs out; it looks like a fault of native code.
    await until('it runs', () => residentMiB() > beforeMiB + 100, 10_000, 1)
    process.kill(pid, 'SIGKILL')
    await cut
    await until('another process', async () => (await modelServerPid(service)) !== pid, 20_000)
  }
  await answers(service, 20_000)
  expect(await indexOf(service, 'greedy')).toMatchObject({
    state: 'UNAVAILABLE',
    reason: expect.stringMatching(
      /ended 3 times within 600 s while it was at work, last by SIGKILL/,
    ) as string,
  })
})
