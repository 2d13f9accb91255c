import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ModelInvalidError } from '../../../src/repository/errors.js'
import { KeptLoads } from '../../../src/serving/repository/kept-loads.js'
import type { ModelManagerOptions } from '../../../src/serving/repository/model-manager.js'
import { config, ensembleOf, managed, noOverride, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

describe('R23: a limit of the system', () => {
  const tooMany = () => Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })

  it.each([['none'], ['poll']] as const)('keeps no model away for good (%s)', async (control) => {
    let left = 1
    const { manager, repository } = managed({
      control,
      probe: () => (left-- > 0 ? Promise.reject(tooMany()) : Promise.resolve()),
    })
    addModel(repository, 'a', { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'a') })
    await manager.start()
    expect(states(manager)).toEqual(['a 1 UNAVAILABLE', 'both 1 UNAVAILABLE'])
    await until('both models', () => manager.ready, 10_000)
    expect(states(manager)).toEqual(['a 1 READY', 'both 1 READY'])
  })

  it('tells a client that asks for a model to come again', async () => {
    const { manager, repository } = managed({ probe: () => Promise.reject(tooMany()) })
    addModel(repository, 'a', { onnx })
    await manager.start()
    await expect(manager.load('a', noOverride)).rejects.toMatchObject({ status: 'UNAVAILABLE' })
  })
})

describe('ensembles', () => {
  function withEnsemble(options: Partial<ModelManagerOptions> = {}) {
    const all = managed(options)
    for (const name of ['a', 'b']) addModel(all.repository, name, { onnx })
    addModel(all.repository, '0-both', { config: ensembleOf('0-both', 'a', 'b') })
    return all
  }

  it('come after the models they run, whatever they are called', async () => {
    const { manager, opened } = withEnsemble({ control: 'none' })
    await manager.start()
    expect(opened.map(({ name }) => name)).toEqual(['a', 'b', '0-both'])
  })

  it('bring the models they run, and take them along when asked to', async () => {
    const { manager } = withEnsemble()
    await manager.start()
    await manager.load('a', noOverride)
    await manager.load('0-both', noOverride)
    expect(states(manager)).toEqual(['0-both 1 READY', 'a 1 READY', 'b 1 READY'])
    await manager.unload('0-both', true)
    await expect.poll(() => states(manager)).toEqual(['0-both 1 UNAVAILABLE', 'a 1 READY', 'b 1 UNAVAILABLE'])
  })

  it('are opened anew with a model that was replaced, and so are the ensembles of these', async () => {
    const { manager, repository, opened } = managed()
    addModel(repository, 'a', { onnx })
    addModel(repository, 'inner', { config: ensembleOf('inner', 'a') })
    addModel(repository, 'outer', { config: ensembleOf('outer', 'inner') })
    await manager.start()
    await manager.load('outer', noOverride)
    expect(opened.map(({ name }) => name)).toEqual(['a', 'inner', 'outer'])
    await manager.load('a', { ...noOverride, config: '{"metric_tags":{"line":"7"}}' })
    expect(opened.slice(3).map(({ name }) => name)).toEqual(['a', 'inner', 'outer'])
    expect(states(manager)).toEqual(['a 1 READY', 'inner 1 READY', 'outer 1 READY'])
  })

  it('end with a model they run, say which, and are back with it', async () => {
    const { manager } = withEnsemble()
    await manager.start()
    await manager.load('0-both', noOverride)
    await manager.unload('a', false)
    await expect
      .poll(() => manager.index(false)[0])
      .toMatchObject({
        state: 'UNAVAILABLE',
        reason: "ensemble '0-both' depends on 'a' which has no loaded version",
      })
    expect(manager.ready).toBe(true)
    await manager.load('a', noOverride)
    expect(states(manager)).toEqual(['0-both 1 READY', 'a 1 READY', 'b 1 READY'])
  })

  it('name the model that is missing', async () => {
    const { manager, repository } = managed()
    addModel(repository, 'e', { config: ensembleOf('e', 'nowhere') })
    await manager.start()
    await expect(manager.load('e', noOverride)).rejects.toMatchObject({
      message: expect.stringContaining(
        'ensemble e contains models that are not available or ambiguous: nowhere',
      ) as string,
    })
  })

  it('do not go round in circles', async () => {
    const { manager, repository } = managed({ control: 'none' })
    addModel(repository, 'x', { config: ensembleOf('x', 'y') })
    addModel(repository, 'y', { config: ensembleOf('y', 'x') })
    addModel(repository, 'z', { onnx })
    await manager.start()
    expect(states(manager)).toEqual(['x 1 UNAVAILABLE', 'y 1 UNAVAILABLE', 'z 1 READY'])
    expect(manager.index(false)[0]?.reason).toBe('circular dependency between ensembles: x -> y -> x')
  })
})

describe('S11: several models', () => {
  /** A manager whose models are up when they are told to be. */
  function gated(options: Partial<ModelManagerOptions> = {}) {
    const began: string[] = []
    const ends = new Map<string, () => void>()
    const all = managed({
      control: 'none',
      loadsAtATime: 2,
      probe: ({ name }) => {
        began.push(name)
        return new Promise((resolve) => ends.set(name, resolve))
      },
      ...options,
    })
    const up = async (name: string) => {
      await until(name, () => ends.has(name))
      ends.get(name)?.()
      ends.delete(name)
    }
    return { ...all, began, up }
  }

  it('load side by side, small ones first, and serve while others still load', async () => {
    const { manager, repository, began, up } = gated()
    addModel(repository, 'a-large', { onnx })
    writeFileSync(join(repository, 'a-large/1/weights.bin'), Buffer.alloc(100_000))
    for (const name of ['b', 'c']) addModel(repository, name, { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'b', 'c') })
    const started = manager.start()
    await until('two', () => began.length === 2)
    expect(began).toEqual(['b', 'c'])
    await up('b')
    // The ensemble waits for its models only, and keeps no other waiting.
    await until('the next', () => began.length === 3)
    expect(began).toEqual(['b', 'c', 'a-large'])
    expect(manager.find('b', '').version).toBe('1')
    await up('c')
    await up('both')
    await until('the ensemble', () => manager.isReady('both', ''))
    expect(manager.ready).toBe(false)
    await up('a-large')
    await started
    expect(manager.ready).toBe(true)
  })

  it('that clients ask for load side by side, so many at a time, and each answers when its own is up', async () => {
    const { manager, repository, began, up } = gated({ control: 'explicit' })
    for (const name of ['a', 'b', 'c']) addModel(repository, name, { onnx })
    await manager.start()
    const [a, b, c] = ['a', 'b', 'c'].map((name) => manager.load(name, noOverride))
    await until('two', () => began.length === 2)
    expect(began).toEqual(['a', 'b'])
    await up('b')
    await b
    expect(states(manager)).toContain('b 1 READY')
    await until('the next', () => began.length === 3)
    await up('a')
    await up('c')
    await Promise.all([a, c])
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'c 1 READY'])
  })

  it('count together where ensembles that clients ask for bring them', async () => {
    const { manager, repository, began, up } = gated({ control: 'explicit' })
    for (const name of ['a', 'b', 'c', 'd']) addModel(repository, name, { onnx })
    addModel(repository, 'ab', { config: ensembleOf('ab', 'a', 'b') })
    addModel(repository, 'cd', { config: ensembleOf('cd', 'c', 'd') })
    await manager.start()
    const both = [manager.load('ab', noOverride), manager.load('cd', noOverride)]
    for (let ended = 0; ended < 6; ended++) {
      await until('a load', () => began.length > ended)
      expect(began.length).toBeLessThanOrEqual(ended + 2)
      await up(began[ended]!)
    }
    await Promise.all(both)
    expect(manager.ready).toBe(true)
  })

  it('that are unloaded while they load are unloaded afterwards, also where an ensemble brings them', async () => {
    const { manager, repository, began, up } = gated({ control: 'explicit' })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'a', 'b') })
    await manager.start()
    const all = [manager.load('both', noOverride), manager.unload('a', false)]
    for (const name of ['a', 'b', 'both']) await up(name)
    await Promise.all(all)
    await expect.poll(() => states(manager)).toEqual(['a 1 UNAVAILABLE', 'b 1 READY', 'both 1 UNAVAILABLE'])
    expect(began).toEqual(['a', 'b', 'both'])
    // That is what was asked for.
    expect(manager.ready).toBe(true)
    const again = [manager.load('a', noOverride), manager.unload('a', false), manager.load('a', noOverride)]
    for (const name of ['a', 'both', 'a', 'both']) await up(name)
    await Promise.all(again)
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
  })

  it('leave an ensemble unloaded that was unloaded while it was opened anew for another', async () => {
    const { manager, repository, began, up, opened } = gated({ control: 'explicit' })
    addModel(repository, 'a', { onnx, config: config('a') })
    addModel(repository, 'one', { config: ensembleOf('one', 'a') })
    await manager.start()
    const first = manager.load('one', noOverride)
    for (const name of ['a', 'one']) await up(name)
    await first
    const replaced = manager.load('a', { ...noOverride, config: '{"max_batch_size": 2}' })
    await up('a')
    await until('the ensemble to be opened anew', () => began.length === 4)
    await manager.unload('one', false)
    await up('one')
    await replaced
    await expect.poll(() => states(manager)).toEqual(['a 1 READY', 'one 1 UNAVAILABLE'])
    await until('one model to be left', () => opened.filter((model) => !model.closed).length === 1)
  })

  it('that clients ask for are refused once the server stops, but for those that have begun', async () => {
    const { manager, repository, began, up } = gated({ control: 'explicit', loadsAtATime: 1 })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    const [a, b, again] = ['a', 'b', 'a'].map((name) => manager.load(name, noOverride))
    await until('one', () => began.length === 1)
    const stopped = manager.stop()
    const isRefused = { status: 'UNAVAILABLE', message: 'Server is stopping' }
    await expect(b).rejects.toMatchObject(isRefused)
    await expect(again).rejects.toMatchObject(isRefused)
    await up('a')
    await a
    await stopped
    expect(began).toEqual(['a'])
  })

  it('that wait for each other while they load come up', async () => {
    const repository = tempDir()
    const io = (way: string) => `${way} { name: "${way[0]}" data_type: TYPE_FP32 dims: [ 1 ] }`
    for (const [name, other] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      addModel(repository, name, { config: `backend: "js" ${io('input')} ${io('output')}` })
      const dir = join(repository, name, '1')
      mkdirSync(dir, { recursive: true })
      writeFileSync(
        join(dir, 'model.mjs'),
        `const channel = new BroadcastChannel('${repository}')
         await new Promise((resolve) => {
           channel.onmessage = ({ data }) => data === '${other}' && resolve()
           setInterval(() => channel.postMessage('${name}'), 10).unref()
         })
         // The other one may not have heard of this one yet.
         setTimeout(() => channel.close(), 1_000)
         export default () => ({ execute: ({ inputs }) => ({ o: inputs.i }) })`,
      )
    }
    const server = await serveRepository(repository, { allowJs: true })
    expect(server.index(false).map(({ name, state }) => `${name} ${state}`)).toEqual(['a READY', 'b READY'])
  })

  it('fail each for itself', async () => {
    const { manager, repository } = managed({
      control: 'none',
      loadsAtATime: 3,
      probe: ({ name }) =>
        name === 'bad' ? Promise.reject(new ModelInvalidError('no', 'Look at it.')) : Promise.resolve(),
    })
    for (const name of ['a', 'bad', 'c']) addModel(repository, name, { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'a', 'bad') })
    await manager.start()
    expect(states(manager)).toEqual(['a 1 READY', 'bad 1 UNAVAILABLE', 'both 1 UNAVAILABLE', 'c 1 READY'])
    expect(manager.index(false)[2]?.reason).toMatch(/depends on 'bad' which has no loaded version.*: no$/)
  })

  it('are no more begun once the server stops, and those that began are closed', async () => {
    const { manager, repository, began, up, opened } = gated()
    for (const name of ['a', 'b', 'c']) addModel(repository, name, { onnx })
    const started = manager.start()
    await until('two', () => began.length === 2)
    const closed = manager.stop()
    await up('a')
    await up('b')
    await started
    await closed
    expect(began).toEqual(['a', 'b'])
    expect(opened.map((model) => model.closed)).toEqual([true, true])
  })

  it('that change together leave an ensemble that runs them with the new ones, and none of the old open', async () => {
    const { manager, repository, opened } = managed({
      control: 'poll',
      loadsAtATime: 4,
      // The ensemble is long at it, so that what is done to it for one model and for the other would overlap.
      probe: async ({ name }) => {
        for (let turns = name === 'both' ? 20 : 1; turns > 0; turns--)
          await new Promise((resolve) => setImmediate(resolve))
      },
    })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx, config: config(name) })
    addModel(repository, 'both', { config: ensembleOf('both', 'a', 'b') })
    await manager.start()
    for (const name of ['a', 'b'])
      addModel(repository, name, { config: config(name, 'instance_group { count: 3 }') })
    await manager.follow(['a', 'b'], [])
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
    const open = () => opened.filter((model) => !model.closed)
    await until('the old ones to end', () => open().length === 3)
    for (const name of ['a', 'b', 'both'])
      expect(open().filter((model) => model.name === name)).toEqual([manager.find(name, '').inner])
  })

  it('that clients had loaded load with the others, as these asked for them', async () => {
    const uploadDir = join(tempDir(), 'models')
    const kept = () => new KeptLoads(uploadDir, silentLog())
    const first = managed({ uploadDir, kept: kept(), load: ['both'] })
    const { repository } = first
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    addModel(repository, 'both', { config: ensembleOf('both', 'a', 'b') })
    await first.manager.start()
    await first.manager.load('a', { ...noOverride, config: '{"max_batch_size": 2}' })
    await first.manager.load('b', noOverride)

    const { manager, began, up, opened } = gated({
      control: 'explicit',
      repositories: [repository],
      uploadDir,
      kept: kept(),
      load: ['both'],
    })
    const started = manager.start()
    await until('two', () => began.length === 2)
    expect(began).toEqual(['a', 'b'])
    for (const name of ['b', 'a', 'both']) await up(name)
    await started
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
    expect(opened.map(({ name, config }) => [name, config.max_batch_size])).toEqual([
      ['b', undefined],
      ['a', 2],
      ['both', undefined],
    ])
  })

  it('that a client had loaded and cannot be any more do not make the server less ready', async () => {
    const uploadDir = join(tempDir(), 'models')
    const kept = () => new KeptLoads(uploadDir, silentLog())
    const first = managed({ uploadDir, kept: kept() })
    const { repository } = first
    for (const name of ['a', 'gone', 'broken']) addModel(repository, name, { onnx })
    await first.manager.start()
    for (const name of ['a', 'gone', 'broken']) await first.manager.load(name, noOverride)
    rmSync(join(repository, 'gone'), { recursive: true })
    addModel(repository, 'broken', { onnx: onnx.subarray(0, 60) })
    const { manager } = managed({ repositories: [repository], uploadDir, kept: kept() })
    await manager.start()
    expect(states(manager)).toEqual(['a 1 READY', 'broken 1 UNAVAILABLE'])
    expect(manager.ready).toBe(true)
  })
})
