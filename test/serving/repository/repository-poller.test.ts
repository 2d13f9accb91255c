import { rmSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ModelInvalidError } from '../../../src/repository/errors.js'
import { RepositoryPoller } from '../../../src/serving/repository/repository-poller.js'
import { managed, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'
import { recordingLog, silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

describe('polling', () => {
  async function polled() {
    const all = managed({ control: 'poll' })
    addModel(all.repository, 'a', { onnx })
    await all.manager.start()
    return { ...all, poller: new RepositoryPoller(all.manager, 1_000, silentLog()) }
  }

  /** Another time of change, whatever the clock of the file system resolves. */
  function touch(path: string, second: number): void {
    utimesSync(path, second, second)
  }

  it('loads a new model once two looks agree on it, and unloads one that is gone', async () => {
    const { manager, repository, poller } = await polled()
    addModel(repository, 'b', { onnx })
    await poller.look()
    expect(states(manager)).toEqual(['a 1 READY', 'b'])
    await poller.look()
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY'])
    rmSync(join(repository, 'a'), { recursive: true })
    await poller.look()
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY'])
    await poller.look()
    expect(states(manager)).toEqual(['b 1 READY'])
  })

  it('takes a new version and leaves the old one in place of nothing', async () => {
    const { manager, repository, poller, opened } = await polled()
    addModel(repository, 'a', { onnx, version: 2 })
    await poller.look()
    await poller.look()
    expect(states(manager)).toEqual(['a 1 UNAVAILABLE', 'a 2 READY'])
    await expect.poll(() => opened.map(({ closed }) => closed)).toEqual([true, false])
  })

  it('R11: never loads a file that is written in pieces before it is whole', async () => {
    const { manager, repository, poller, opened } = await polled()
    const path = join(repository, 'a/1/model.onnx')
    for (let second = 1; second < 10; second++) {
      writeFileSync(path, onnx.subarray(0, Math.floor((onnx.length * second) / 10)))
      touch(path, second)
      // A writer that pauses longer than a look: the files are settled, and still not whole.
      for (let look = 0; look < 3; look++) await poller.look()
      expect(opened).toHaveLength(1)
      expect(states(manager)).toEqual(['a 1 READY'])
    }
    writeFileSync(path, onnx)
    touch(path, 10)
    for (let look = 0; look < 2; look++) await poller.look()
    expect(opened).toHaveLength(2)
  })

  it('R11: tries a model that cannot be loaded again only after it changed again', async () => {
    let tries = 0
    const { manager, repository } = managed({
      control: 'poll',
      probe: () => {
        tries += 1
        return Promise.reject(new ModelInvalidError('no', 'Look at it.'))
      },
    })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const poller = new RepositoryPoller(manager, 1_000, silentLog())
    for (let look = 0; look < 4; look++) await poller.look()
    expect(tries).toBe(1)
    touch(join(repository, 'a/1/model.onnx'), 7)
    for (let look = 0; look < 4; look++) await poller.look()
    expect(tries).toBe(2)
  })

  it('says of a model whose folder went that it has no version, and serves it when it is back', async () => {
    const { manager, repository, poller } = await polled()
    rmSync(join(repository, 'a'), { recursive: true })
    for (let look = 0; look < 3; look++) await poller.look()
    expect(states(manager)).toEqual([])
    expect(manager.ready).toBe(true)
    const unknown = "Request for unknown model: 'a'"
    expect(() => manager.find('a', '')).toThrow(
      expect.objectContaining({ status: 'NOT_FOUND', message: `${unknown} has no available versions` }),
    )
    await expect.poll(() => manager.record('a')?.versions.map(({ state }) => state)).toEqual(['UNAVAILABLE'])
    expect(() => manager.find('a', '1')).toThrow(
      expect.objectContaining({
        status: 'UNAVAILABLE',
        message: `${unknown} version 1 is not at ready state`,
      }),
    )
    addModel(repository, 'a', { onnx })
    for (let look = 0; look < 2; look++) await poller.look()
    expect(states(manager)).toEqual(['a 1 READY'])
    expect(manager.find('a', '').version).toBe('1')
  })

  it('keeps a model that another repository has by now, says so, and takes the one that stays', async () => {
    const { log, lines } = recordingLog()
    const [repository, other] = [tempDir(), tempDir()]
    const { manager, opened } = managed({ control: 'poll', repositories: [repository, other], log })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const poller = new RepositoryPoller(manager, 1_000, log)
    addModel(other, 'a', { onnx })
    for (let look = 0; look < 3; look++) await poller.look()
    const both = `model 'a' is not unique across all model repositories: ${basename(repository)}/a and ${basename(other)}/a`
    expect(manager.index(false)).toEqual([
      { name: 'a', version: '1', state: 'READY', reason: `${both}; what served before serves on` },
    ])
    expect(lines.filter(({ msg }) => msg === 'model is there more than once')).toMatchObject([
      { model: 'a', reason: both },
    ])
    expect(opened.map(({ closed }) => closed)).toEqual([false])
    rmSync(join(repository, 'a'), { recursive: true })
    for (let look = 0; look < 3; look++) await poller.look()
    expect(manager.index(false)).toEqual([{ name: 'a', version: '1', state: 'READY', reason: '' }])
    await expect.poll(() => opened.map(({ closed }) => closed)).toEqual([true, false])
  })
})
