import { describe, expect, it } from 'vitest'
import { type ModelManagerOptions } from '../../../src/serving/repository/model-manager.js'
import { ensembleOf, managed, noOverride, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'
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
