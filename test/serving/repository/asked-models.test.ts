import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LocalModelServer } from '../../../src/serving/local-model-server.js'
import type { ModelManagerOptions } from '../../../src/serving/repository/model-manager.js'
import { MemorySettings } from '../../../src/serving/settings.js'
import { FakeLoadedModel } from '../../support/fake-loaded-model.js'
import { config, ensembleOf, managed, noOverride, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'

/** Models that are loaded when they are first asked for. */
function askedFor(options: Partial<ModelManagerOptions> = {}, toldWithinMs?: number) {
  let nowMs = 0
  const tried: string[] = []
  const all = managed({
    control: 'asked',
    nowMs: () => nowMs,
    probe: ({ name }) => {
      tried.push(name)
      return Promise.resolve()
    },
    ...options,
  })
  const server = new LocalModelServer({
    version: '1',
    manager: all.manager,
    settings: new MemorySettings(),
    metrics: () => Promise.resolve(''),
    ...(toldWithinMs === undefined ? {} : { toldWithinMs }),
  })
  return { ...all, server, tried, pass: (ms: number) => void (nowMs += ms) }
}

/** A probe that waits until the test lets it go on. */
function heldProbe() {
  const tried: string[] = []
  const waiting: (() => void)[] = []
  return {
    tried,
    go: () => {
      for (const go of waiting.splice(0)) go()
    },
    probe: ({ name }: { name: string }) =>
      new Promise<void>((resolve) => {
        tried.push(name)
        waiting.push(resolve)
      }),
  }
}

const request = (over: Partial<typeof FakeLoadedModel.request> = {}) => ({
  ...FakeLoadedModel.request,
  ...over,
})

describe('a model that nobody has asked for', () => {
  it('is not loaded, is in the index with the reason, and makes the server not ready', async () => {
    const { manager, repository, tried } = askedFor()
    addModel(repository, 'a', { onnx })
    for (const version of [1, 2])
      addModel(repository, 'b', { onnx, version, config: config('b', 'version_policy { all {} }') })
    await manager.start()
    const entry = { state: 'UNAVAILABLE', reason: 'not asked for yet' }
    expect(manager.index(false)).toEqual([
      { name: 'a', version: '1', ...entry },
      { name: 'b', version: '1', ...entry },
      { name: 'b', version: '2', ...entry },
    ])
    expect(manager.index(true)).toEqual([])
    expect(manager.ready).toBe(false)
    expect(tried).toEqual([])
    expect(manager.records()).toEqual([])
  })

  it('is loaded once by all that ask for it first, and asks for nothing after that', async () => {
    const { probe, tried, go } = heldProbe()
    const { manager, repository } = askedFor({ probe })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    const first = [1, 2, 3].map(() => manager.ask('a'))
    expect(new Set(first).size).toBe(1)
    expect(tried).toEqual(['a'])
    go()
    for (const loading of first) await loading
    expect(manager.find('a', '').version).toBe('1')
    expect(manager.ask('a')).toBeUndefined()
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 UNAVAILABLE'])
  })

  it('is loaded with what it runs, and alone where it is what others run', async () => {
    const { manager, repository } = askedFor()
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'a', 'b') })
    await manager.start()
    await manager.ask('a')
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 UNAVAILABLE', 'both 1 UNAVAILABLE'])
    await manager.ask('both')
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
  })

  it('is loaded by the first request for it, by its name, with a version or without', async () => {
    const { manager, repository, server, opened } = askedFor()
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    const answer = server.infer(request({ model: 'a' }))
    await expect.poll(() => opened[0]?.asked.length).toBe(1)
    opened[0]?.answer([])
    expect(await answer).toMatchObject({ model: 'a', version: '1' })
    await expect(server.infer(request({ model: 'b', version: '7' }))).rejects.toMatchObject({
      status: 'NOT_FOUND',
    })
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY'])
  })

  it('is loaded with all others when somebody asks whether the server is ready', async () => {
    const { manager, repository } = askedFor()
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    await manager.ask('')
    expect(manager.ready).toBe(true)
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY'])
    expect(manager.ask('')).toBeUndefined()
  })

  it('keeps nobody for long who wants to know whether all serve, while it is loaded', async () => {
    const { probe, go } = heldProbe()
    const { manager, repository, server } = askedFor({ probe }, 20)
    addModel(repository, 'a', { onnx })
    await manager.start()
    await server.ask('')
    expect(server.ready()).toBe(false)
    // A request for it waits on.
    const loading = server.ask('a')
    go()
    await loading
    await server.ask('')
    expect(server.ready()).toBe(true)
  })

  it('can be put there later', async () => {
    const { manager, repository, pass } = askedFor()
    await manager.start()
    expect(manager.ask('late')).toBeUndefined()
    expect(() => manager.find('late', '')).toThrow("Request for unknown model: 'late' is not found")
    addModel(repository, 'late', { onnx })
    pass(1_000)
    await manager.ask('late')
    expect(states(manager)).toEqual(['late 1 READY'])
  })

  it('does not come or go by a request for that', async () => {
    const { manager, repository } = askedFor()
    addModel(repository, 'a', { onnx })
    await manager.start()
    for (const change of [manager.load('a', noOverride), manager.unload('a', false)])
      await expect(change).rejects.toMatchObject({ status: 'UNAVAILABLE' })
  })

  it('is not loaded where it stands in for a step on a GPU, but by its name', async () => {
    const { manager, repository } = askedFor()
    for (const name of ['cpu', 'gpu']) addModel(repository, name, { onnx })
    const parameters = 'parameters { key: "gantry.gpu_model" value { string_value: "gpu" } }'
    addModel(repository, 'both', { config: `${ensembleOf('both', 'cpu')} ${parameters}` })
    await manager.start()
    await manager.ask('')
    expect(manager.ready).toBe(true)
    expect(states(manager)).toEqual(['both 1 READY', 'cpu 1 READY', 'gpu 1 UNAVAILABLE'])
    await manager.ask('gpu')
    expect(states(manager)).toContain('gpu 1 READY')
  })

  it('stays out where it ended the process before this one', async () => {
    const { manager, repository } = askedFor({ heldOut: new Map([['a', 'it took too much memory']]) })
    addModel(repository, 'a', { onnx })
    await manager.start()
    expect(manager.ask('a')).toBeUndefined()
    await manager.ask('')
    expect(manager.index(false)).toEqual([
      { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'it took too much memory' },
    ])
    expect(manager.ready).toBe(true)
  })
})

describe('R37: a model that is asked for and cannot be loaded', () => {
  it('is answered with the reason, and tried again after a while that grows', async () => {
    const { manager, repository, server, tried, pass } = askedFor()
    addModel(repository, 'a', { onnx: onnx.subarray(0, 50) })
    await manager.start()
    await manager.ask('a')
    expect(tried).toEqual(['a'])
    await expect(server.infer(request({ model: 'a' }))).rejects.toMatchObject({
      status: 'NOT_FOUND',
      message: expect.stringMatching(
        /^Request for unknown model: 'a' has no available versions: .*model\.onnx/,
      ) as string,
    })
    expect(manager.ready).toBe(false)
    for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      pass(waitMs - 1)
      expect(manager.ask('a')).toBeUndefined()
      pass(1)
      await manager.ask('a')
    }
    expect(tried).toHaveLength(9)
    writeFileSync(join(repository, 'a', '1', 'model.onnx'), onnx)
    pass(60_000)
    await manager.ask('')
    expect(manager.ready).toBe(true)
    expect(manager.find('a', '').version).toBe('1')
  })

  it('does not keep the others waiting, of which so many are loaded at a time', async () => {
    const { probe, tried, go } = heldProbe()
    const { manager, repository } = askedFor({ probe, loadsAtATime: 2 })
    for (const name of ['a', 'b', 'c']) addModel(repository, name, { onnx })
    await manager.start()
    const all = ['a', 'b', 'c'].map((name) => manager.ask(name))
    expect(tried).toEqual(['a', 'b'])
    go()
    for (const loading of all.slice(0, 2)) await loading
    await expect.poll(() => tried).toEqual(['a', 'b', 'c'])
    go()
    await all[2]
    expect(manager.records().every(({ ready }) => ready)).toBe(true)
  })
})

describe('a request that waits for its model', () => {
  it('waits no longer than it may take itself, and the model is loaded all the same', async () => {
    const { probe, go } = heldProbe()
    const { manager, repository, server } = askedFor({ probe })
    addModel(repository, 'a', { onnx })
    await manager.start()
    await expect(server.infer(request({ model: 'a', timeoutUs: 10_000 }))).rejects.toMatchObject({
      status: 'UNAVAILABLE',
      message: 'Request timeout expired',
    })
    go()
    await manager.ask('a')
    expect(manager.find('a', '').version).toBe('1')
  })

  it('ends with its client', async () => {
    const { probe, go } = heldProbe()
    const { manager, repository, server } = askedFor({ probe })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const client = new AbortController()
    const answer = server.infer(request({ model: 'a', signal: client.signal }))
    client.abort()
    await expect(answer).rejects.toMatchObject({ status: 'CANCELLED' })
    go()
  })

  it('has what is left of its time for its run', async () => {
    const { probe, go } = heldProbe()
    const { manager, repository, server, opened } = askedFor({ probe })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const answer = server.infer(request({ model: 'a', timeoutUs: 60_000_000 }))
    go()
    await expect.poll(() => opened[0]?.asked.length).toBe(1)
    expect(opened[0]?.asked[0]?.timeoutUs).toBeLessThan(60_000_000)
    opened[0]?.answer([])
    await answer
  })

  it('is told when the server stops before', async () => {
    const { probe, go } = heldProbe()
    const { manager, repository, server } = askedFor({ probe, loadsAtATime: 1 })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    const underWay = manager.ask('a')
    const waiting = server.infer(request({ model: 'b' }))
    manager.refuse()
    go()
    await underWay
    await expect(waiting).rejects.toMatchObject({ status: 'UNAVAILABLE', message: 'Server is stopping' })
    expect(manager.find('a', '').version).toBe('1')
  })
})
