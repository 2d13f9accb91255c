import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RepositoryPoller } from '../../../src/serving/repository/repository-poller.js'
import { config, ensembleOf, managed, noOverride, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'
import { silentLog } from '../../support/silent-log.js'

describe('S11: a model that is held out', () => {
  const heldOut = new Map([['a', 'it took too much memory']])

  it.each([['none'], ['poll'], ['explicit']] as const)(
    'is unavailable with the reason, and the server is ready without it (%s)',
    async (control) => {
      const released: string[] = []
      const { manager, repository, opened } = managed({
        control,
        load: ['*'],
        heldOut,
        onReleased: (name) => released.push(name),
      })
      addModel(repository, 'a', { onnx })
      addModel(repository, 'b', { onnx })
      addModel(repository, 'both', { config: ensembleOf('both', 'a', 'b') })
      await manager.start()
      expect(manager.index(false)).toMatchObject([
        { name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'it took too much memory' },
        { name: 'b', state: 'READY' },
        { name: 'both', state: 'UNAVAILABLE' },
      ])
      expect(manager.ready).toBe(true)
      if (control !== 'explicit') return
      await manager.load('a', noOverride)
      expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
      expect(opened.map(({ name }) => name)).toEqual(['b', 'a', 'both'])
      expect(released).toEqual(['a'])
    },
  )

  it('comes back when its files change, and not before', async () => {
    const released: string[] = []
    const { manager, repository } = managed({
      control: 'poll',
      heldOut,
      onReleased: (name) => released.push(name),
    })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const poller = new RepositoryPoller(manager, 1_000, silentLog())
    for (let look = 0; look < 4; look++) await poller.look()
    expect(states(manager)).toEqual(['a 1 UNAVAILABLE'])
    writeFileSync(join(repository, 'a/config.pbtxt'), config('a', 'instance_group { count: 1 }'))
    for (let look = 0; look < 2; look++) await poller.look()
    expect(states(manager)).toEqual(['a 1 READY'])
    expect(released).toEqual(['a'])
  })
})
