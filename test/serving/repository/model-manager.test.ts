import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RemoteError } from '../../../src/errors.js'
import { ModelInvalidError } from '../../../src/repository/errors.js'
import { KeptLoads } from '../../../src/serving/repository/kept-loads.js'
import { RepositoryPoller } from '../../../src/serving/repository/repository-poller.js'
import { FakeLoadedModel } from '../../support/fake-loaded-model.js'
import { config, ensembleOf, managed, noOverride, onnx, states } from '../../support/managed-models.js'
import { addModel } from '../../support/onnx-models.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

describe('control mode none', () => {
  it('loads everything at the start, and nothing by request', async () => {
    const { manager, repository } = managed({ control: 'none' })
    addModel(repository, 'a', { onnx })
    addModel(repository, 'broken', { onnx: onnx.subarray(0, 50) })
    await manager.start()
    expect(states(manager)).toEqual(['a 1 READY', 'broken 1 UNAVAILABLE'])
    expect(manager.ready).toBe(false)
    for (const change of [manager.load('a', noOverride), manager.unload('a', false)])
      await expect(change).rejects.toMatchObject({
        status: 'UNAVAILABLE',
        message: 'explicit model load / unload is not allowed if polling is enabled',
      })
  })

  it('refuses a name that two repositories have, and names both', async () => {
    const [one, two] = [tempDir(), tempDir()]
    addModel(one, 'twice', { onnx })
    addModel(two, 'twice', { onnx })
    addModel(two, 'once', { onnx })
    const { manager } = managed({ repositories: [one, two], control: 'none' })
    await manager.start()
    expect(states(manager)).toEqual(['once 1 READY', 'twice 1 UNAVAILABLE'])
    const reason = manager.index(false).find(({ name }) => name === 'twice')?.reason
    expect(reason).toContain(`${basename(one)}/twice and ${basename(two)}/twice`)
  })

  it('S29: tells clients no path above the folder of a model', async () => {
    const { manager, repository } = managed({ control: 'explicit' })
    addModel(repository, 'broken', { onnx: onnx.subarray(0, 50) })
    addModel(repository, 'unreadable', { onnx, config: 'max_batch_size: x' })
    addModel(repository, 'other', {
      onnx,
      config: 'output [{ name: "nope" data_type: TYPE_FP32 dims: [1] }]',
    })
    await manager.start()
    const said: unknown[] = []
    for (const name of ['broken', 'unreadable', 'nowhere'])
      await manager.load(name, noOverride).catch((error: unknown) => said.push((error as Error).message))
    await manager
      .load('broken', { files: new Map([['1/model.onnx', onnx.subarray(0, 50)]]), config: '{}' })
      .catch((error: unknown) => said.push((error as Error).message))
    expect(said).toHaveLength(4)
    expect(said[0]).toMatch(/: broken\/1\/model\.onnx /)
    for (const text of [...said, ...manager.index(false).map(({ reason }) => reason)])
      expect(text ?? '').not.toMatch(/(?<![\w.])\/\w/)
  })
})

describe('a repository that cannot be read', () => {
  it.each([
    ['none', []],
    ['explicit', ['a']],
  ] as const)(
    'at the start of %s is loaded once it can, and does not hold up the others',
    async (control, load) => {
      const dir = tempDir()
      const [here, late] = [join(dir, 'here'), join(dir, 'late')]
      addModel(here, 'b', { onnx })
      addModel(here, 'both', { config: ensembleOf('both', 'a', 'b') })
      const wanted = control === 'none' ? [] : [...load, 'both']
      const { manager } = managed({ repositories: [here, late], control, load: wanted })
      await manager.start()
      expect([...manager.unreadable]).toEqual([[late, 'no such folder']])
      expect(manager.ready).toBe(false)
      expect(states(manager)).toContain('both 1 UNAVAILABLE')
      addModel(late, 'a', { onnx })
      await manager.lookAtRepositories()
      expect([...manager.unreadable]).toEqual([])
      expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY', 'both 1 READY'])
      expect(manager.ready).toBe(true)
    },
  )

  it('later, keeps its models serving, also with poll', async () => {
    const { manager, repository } = managed({ control: 'poll' })
    addModel(repository, 'a', { onnx })
    await manager.start()
    const poller = new RepositoryPoller(manager, 1_000, silentLog())
    renameSync(repository, `${repository}.away`)
    for (let looks = 0; looks < 3; looks++) await poller.look()
    expect(manager.ready).toBe(false)
    expect(manager.find('a', '').version).toBe('1')
    renameSync(`${repository}.away`, repository)
    await poller.look()
    expect(manager.ready).toBe(true)
    rmSync(join(repository, 'a'), { recursive: true })
    for (let looks = 0; looks < 3; looks++) await poller.look()
    expect(states(manager)).toEqual([])
  })

  it('is named when a model is asked for that may be in it', async () => {
    const dir = tempDir()
    const { manager } = managed({ repositories: [join(dir, 'none')] })
    await manager.start()
    await expect(manager.load('a', noOverride)).rejects.toThrow(
      "failed to load 'a', failed to poll from model repository: cannot read model repository none: no such folder",
    )
  })
})

describe('versions', () => {
  it.each([
    ['the latest without a policy', '', [3]],
    ['as many as the policy says', 'version_policy { latest { num_versions: 2 } }', [2, 3]],
    ['all', 'version_policy { all {} }', [1, 2, 3]],
    ['those that are named', 'version_policy { specific { versions: [3, 1] } }', [1, 3]],
  ])('serves %s', async (_, policy, served) => {
    const { manager, repository } = managed({ control: 'none' })
    for (const version of [1, 2, 3]) addModel(repository, 'm', { onnx, version, config: config('m', policy) })
    await manager.start()
    expect(states(manager)).toEqual(served.map((version) => `m ${version} READY`))
    expect(manager.find('m', '').version).toBe(String(served.at(-1)))
  })

  it('tells a version that is named and not there, and is ready without it', async () => {
    const { manager, repository } = managed({ control: 'none' })
    const named = (versions: string) => config('m', `version_policy { specific { versions: ${versions} } }`)
    addModel(repository, 'm', { onnx, config: named('[1, 7]') })
    await manager.start()
    expect(states(manager)).toEqual(['m 1 READY', 'm 7 UNAVAILABLE'])
    const [, absent] = manager.index(false)
    expect(absent?.reason).toBe(
      "version 7 is specified for model 'm', but the version directory is not present",
    )
    expect(manager.record('m')?.definition?.warnings).toEqual([`version_policy: ${absent?.reason}`])
    expect(manager.ready).toBe(true)
  })

  it('serves those that can be loaded, also at the first load, and tells why another cannot', async () => {
    const { manager, repository } = managed({ control: 'none' })
    const policy = 'version_policy { all {} }'
    for (const version of [1, 2, 3])
      addModel(repository, 'm', {
        onnx: version === 3 ? onnx.subarray(0, 60) : onnx,
        version,
        config: config('m', policy),
      })
    await manager.start()
    expect(states(manager)).toEqual(['m 1 READY', 'm 2 READY', 'm 3 UNAVAILABLE'])
    expect(manager.index(false)[2]?.reason).toContain('not a readable ONNX model')
    expect(manager.find('m', '').version).toBe('2')
    expect(manager.ready).toBe(false)
  })

  it('refuses a model of which no version that is named is there', async () => {
    const { manager, repository } = managed({ control: 'none' })
    const policy = 'version_policy { specific { versions: [7, 8] } }'
    addModel(repository, 'm', { onnx, config: config('m', policy) })
    await manager.start()
    expect(manager.index(false)).toMatchObject([
      {
        state: 'UNAVAILABLE',
        reason: expect.stringContaining("version 7 is specified for model 'm', but") as string,
      },
    ])
    expect(manager.ready).toBe(false)
  })

  it('takes the configuration that models.configName names, where a model has it', async () => {
    const { manager, repository } = managed({ configName: 'h100', load: ['*'] })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx, config: config(name) })
    mkdirSync(join(repository, 'a/configs'))
    const custom = join(repository, 'a/configs/h100.pbtxt')
    writeFileSync(custom, config('a').replace('max_batch_size: 4', 'max_batch_size: 16'))
    await manager.start()
    const largest = (name: string) => manager.find(name, '').config.max_batch_size
    expect([largest('a'), largest('b')]).toEqual([16, 4])
    writeFileSync(custom, config('a').replace('max_batch_size: 4', 'max_batch_size: 32'))
    await manager.load('a', noOverride)
    expect(largest('a')).toBe(32)
  })

  it('tells what was asked for and is not there', async () => {
    const { manager, repository } = managed({ load: ['m'] })
    addModel(repository, 'm', { onnx })
    addModel(repository, 'idle', { onnx })
    await manager.start()
    const errorOf = (name: string, version: string) => {
      try {
        return manager.find(name, version)
      } catch (error) {
        return error
      }
    }
    expect(errorOf('x', '')).toMatchObject({
      status: 'INVALID_ARG',
      message: "Request for unknown model: 'x' is not found",
    })
    expect(errorOf('idle', '')).toMatchObject({ status: 'INVALID_ARG' })
    expect(errorOf('m', '7')).toMatchObject({
      status: 'NOT_FOUND',
      message: "Request for unknown model: 'm' version 7 is not found",
    })
    await manager.unload('m', false)
    expect(errorOf('m', '')).toMatchObject({
      status: 'NOT_FOUND',
      message: "Request for unknown model: 'm' has no available versions",
    })
    expect(errorOf('m', '1')).toMatchObject({
      status: 'UNAVAILABLE',
      message: "Request for unknown model: 'm' version 1 is not at ready state",
    })
  })
})

describe('load by request', () => {
  it('loads what it is told at the start, and the rest when asked', async () => {
    const { manager, repository } = managed({ load: ['a'] })
    for (const name of ['a', 'b']) addModel(repository, name, { onnx })
    await manager.start()
    expect(states(manager)).toEqual(['a 1 READY', 'b'])
    await manager.load('b', noOverride)
    expect(states(manager)).toEqual(['a 1 READY', 'b 1 READY'])
  })

  it.each(['missing', '..', '../a', 'a/b', '.hidden', '', 'a\0b'])(
    'S8: refuses the name %j',
    async (name) => {
      const { manager } = managed()
      await manager.start()
      await expect(manager.load(name, noOverride)).rejects.toMatchObject({
        status: 'INTERNAL',
        message: `failed to load '${name}', failed to poll from model repository`,
      })
    },
  )

  it('does nothing for a model that has not changed', async () => {
    const { manager, repository, opened } = managed()
    addModel(repository, 'a', { onnx })
    await manager.start()
    await manager.load('a', noOverride)
    await manager.load('a', noOverride)
    expect(opened).toHaveLength(1)
  })

  it('replaces a model after the new one is ready, and ends the old one after its requests', async () => {
    const { manager, repository, opened } = managed()
    addModel(repository, 'a', { onnx, config: config('a') })
    await manager.start()
    await manager.load('a', noOverride)
    const running = manager.find('a', '').infer(FakeLoadedModel.request)
    await manager.load('a', { ...noOverride, config: '{"max_batch_size": 2}' })
    expect(manager.find('a', '').config.max_batch_size).toBe(2)
    expect(opened.map(({ closed }) => closed)).toEqual([false, false])
    opened[0]?.answer()
    await running
    await expect.poll(() => opened.map(({ closed }) => closed)).toEqual([true, false])
  })

  it('R11: keeps what serves when the new one cannot be loaded, and says why', async () => {
    const { manager, repository, opened } = managed()
    addModel(repository, 'a', { onnx })
    await manager.start()
    await manager.load('a', noOverride)
    addModel(repository, 'a', { onnx: onnx.subarray(0, 60) })
    await expect(manager.load('a', noOverride)).rejects.toMatchObject({
      status: 'INVALID_ARG',
      message: expect.stringMatching(
        /^load failed for model 'a': version 1 is at UNAVAILABLE state: .*not a readable ONNX model/,
      ) as string,
    })
    expect(states(manager)).toEqual(['a 1 READY'])
    expect(opened[0]?.closed).toBe(false)
    expect(manager.ready).toBe(true)
  })

  it('keeps a configuration that was sent, as Triton does, until files of the model change or it is unloaded', async () => {
    const uploadDir = join(tempDir(), 'models')
    const kept = () => new KeptLoads(uploadDir, silentLog())
    const { manager, repository, opened } = managed({ uploadDir, kept: kept() })
    addModel(repository, 'a', { onnx, config: config('a') })
    await manager.start()
    const most = () => manager.find('a', '').config.max_batch_size
    const sent = { ...noOverride, config: '{"max_batch_size": 2}' }
    await manager.load('a', sent)
    await manager.load('a', noOverride)
    expect([most(), opened.length]).toEqual([2, 1])
    // Also for a process that takes the place of this one.
    expect(kept().loads()).toMatchObject([{ name: 'a', config: sent.config }])
    addModel(repository, 'a', { config: config('a', 'metric_tags { key: "line" value: "7" }') })
    await manager.load('a', noOverride)
    expect(most()).toBe(4)
    expect(kept().loads()).toMatchObject([{ name: 'a', config: undefined }])
    await manager.load('a', sent)
    await manager.unload('a', false)
    await manager.load('a', noOverride)
    expect(most()).toBe(4)
  })

  it('tells the one that only has other instances whose place it takes', async () => {
    const { manager, repository, opened } = managed()
    addModel(repository, 'a', { onnx, config: config('a') })
    await manager.start()
    await manager.load('a', noOverride)
    addModel(repository, 'a', { config: config('a', 'instance_group { count: 3 }') })
    await manager.load('a', noOverride)
    addModel(repository, 'a', { config: config('a', 'dynamic_batching {}') })
    await manager.load('a', noOverride)
    expect(opened.map(({ before }) => before)).toEqual([undefined, opened[0], undefined])
  })

  it.each([
    ['an unknown field', '{"max_batch": 2}', "ModelConfig: unknown field 'max_batch'"],
    ['no JSON', '{', 'JSON'],
    ['a wrong type', '{"max_batch_size": "many"}', 'max_batch_size must be a whole number'],
    ['two schedulers', '{"dynamic_batching": {}, "sequence_batching": {}}', 'exclude each other'],
  ])('refuses a configuration with %s', async (_, json, problem) => {
    const { manager, repository } = managed()
    addModel(repository, 'a', { onnx })
    await manager.start()
    await expect(manager.load('a', { ...noOverride, config: json })).rejects.toMatchObject({
      message: expect.stringContaining(problem) as string,
    })
  })

  it('loads files that a client sends, and removes them with the model', async () => {
    const uploadDir = tempDir()
    const { manager, opened } = managed({ uploadDir })
    await manager.start()
    const files = new Map([['1/model.onnx', onnx]])
    await expect(manager.load('sent', { config: undefined, files })).rejects.toMatchObject({
      status: 'INVALID_ARG',
    })
    await manager.load('sent', { config: '{}', files })
    expect(states(manager)).toEqual(['sent 1 READY'])
    expect(opened[0]?.context.versionDir.startsWith(uploadDir)).toBe(true)
    await manager.unload('sent', false)
    await expect.poll(() => readdirSync(uploadDir)).toEqual([])
  })

  it.each(['../x', '1/../../x', '/etc/x', '1/', 'x/model.onnx', '1/a/b', '1/.x'])(
    'S8: refuses a file called %j and leaves nothing behind',
    async (path) => {
      const uploadDir = tempDir()
      const { manager } = managed({ uploadDir })
      await manager.start()
      const load = manager.load('sent', { config: '{}', files: new Map([[path, onnx]]) })
      await expect(load).rejects.toMatchObject({ status: 'INVALID_ARG' })
      expect(readdirSync(uploadDir)).toEqual([])
    },
  )

  it('S8: refuses links that lead out of the repository', async () => {
    const { manager, repository } = managed()
    const outside = tempDir()
    writeFileSync(join(outside, 'model.onnx'), onnx)
    mkdirSync(join(repository, 'linked/1'), { recursive: true })
    symlinkSync(join(outside, 'model.onnx'), join(repository, 'linked/1/model.onnx'))
    await manager.start()
    await expect(manager.load('linked', noOverride)).rejects.toMatchObject({
      message: expect.stringMatching(/link that leads out/) as string,
    })
  })

  it('refuses a model that its probe refuses', async () => {
    const { manager, repository, opened } = managed({
      probe: () => Promise.reject(new ModelInvalidError('it asks for 12 GiB', 'Look at it.')),
    })
    addModel(repository, 'hostile', { onnx })
    await manager.start()
    await expect(manager.load('hostile', noOverride)).rejects.toMatchObject({
      message: "load failed for model 'hostile': version 1 is at UNAVAILABLE state: it asks for 12 GiB",
    })
    expect(opened).toEqual([])
    expect(manager.ready).toBe(true)
  })
})

describe('what clients loaded', () => {
  it('is there again in the process that takes the place of another', async () => {
    const uploadDir = join(tempDir(), 'models')
    const kept = () => new KeptLoads(uploadDir, silentLog())
    const first = managed({ uploadDir, kept: kept(), load: ['listed'] })
    const { repository } = first
    for (const name of ['listed', 'asked', 'left']) addModel(repository, name, { onnx })
    await first.manager.start()
    await first.manager.load('asked', { config: '{"max_batch_size": 2}', files: new Map() })
    await first.manager.load('sent', { config: '{}', files: new Map([['1/model.onnx', onnx]]) })
    await first.manager.load('left', noOverride)
    await first.manager.unload('left', false)
    await first.manager.unload('listed', false)

    const second = managed({ repositories: [repository], uploadDir, kept: kept(), load: ['listed'] })
    await second.manager.start()
    expect(states(second.manager)).toEqual(['asked 1 READY', 'left', 'listed', 'sent 1 READY'])
    expect(second.opened.map(({ config }) => config.max_batch_size)).toEqual([2, undefined])
  })
})

describe('R45: a model that is opened anew', () => {
  it('takes the place of what served, with its ensembles, and its statistics go on', async () => {
    const { manager, repository, opened } = managed({ control: 'none' })
    addModel(repository, 'a', { onnx })
    addModel(repository, 'e', { config: ensembleOf('e', 'a') })
    await manager.start()
    const [before, ensemble] = opened
    await manager.renew('a')
    expect(states(manager)).toEqual(['a 1 READY', 'e 1 READY'])
    expect(opened.map(({ name }) => name)).toEqual(['a', 'e', 'a', 'e'])
    expect(opened[2]?.before).toBe(before)
    expect([before?.closed, ensemble?.closed, opened[2]?.closed]).toEqual([true, true, false])
  })

  it('serves on as it was where it cannot be opened, and where it is not there', async () => {
    let fails = false
    const { manager, repository } = managed({
      control: 'none',
      open: (context) =>
        fails
          ? Promise.reject(new ModelInvalidError('no', 'h'))
          : Promise.resolve(new FakeLoadedModel(context)),
    })
    addModel(repository, 'a', { onnx })
    await manager.start()
    fails = true
    await manager.renew('a')
    await manager.renew('unknown')
    expect(states(manager)).toEqual(['a 1 READY'])
    expect(manager.find('a', '').version).toBe('1')
  })
})

describe('R46: a model whose GPU fails', () => {
  it('is loaded again and again, until the GPU runs it', async () => {
    let fails = true
    const { manager, repository } = managed({
      control: 'none',
      open: (context) =>
        fails
          ? Promise.reject(
              new RemoteError({
                code: 'GANTRY_PROVIDER_FAILS',
                message: 'cuda: GPU 0 is out of memory',
                hint: '',
              }),
            )
          : Promise.resolve(new FakeLoadedModel(context)),
    })
    addModel(repository, 'a', { onnx })
    await manager.start()
    expect(manager.index(false)[0]).toMatchObject({
      state: 'UNAVAILABLE',
      reason: 'cuda: GPU 0 is out of memory',
    })
    fails = false
    await until('it serves', () => states(manager)[0] === 'a 1 READY')
  })
})
