import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../../src/cli/program.js'
import type { Readiness } from '../../src/api/gantry.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import type { IndexEntry } from '../../src/serving/model-server.js'
import { accepted, tritonRefuses } from '../support/configuration-forms.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { GantryProcess } from '../support/gantry-process.js'
import { echoOnnx } from '../support/model-repository.js'
import { addModel } from '../support/onnx-models.js'
import { runOnPipeline } from '../support/pipeline-command.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

/** Each test starts at least one service, some load a hundred models. */
const testMs = 120_000

const onnx = echoOnnx('float32', ['batch', 4])
const noCameras = { engines: 0, log: { format: 'json' } }

/** A folder with one model that serves. */
function repositoryIn(dir: string, name = 'models', model = 'echo'): string {
  const repository = join(dir, name)
  addModel(repository, model, { onnx })
  return repository
}

/** Ways in which a configured folder is none, each with the words for it. */
const missing: [string, (dir: string) => string, string][] = [
  ['does not exist', (dir) => join(dir, 'none'), 'no such folder'],
  ['is a file', (dir) => fileIn(dir), 'it is a file, not a folder'],
  ['is a link to nothing', (dir) => linkIn(dir, 'gone'), 'which does not exist'],
  ['is a link to itself', (dir) => linkIn(dir, 'link'), 'a link that leads back to itself'],
]

function fileIn(dir: string): string {
  const path = join(dir, 'file')
  writeFileSync(path, '')
  return path
}

function linkIn(dir: string, to: string): string {
  const path = join(dir, 'link')
  symlinkSync(join(dir, to), path)
  return path
}

/** `gantry serve` that need not become ready. */
class Service {
  private constructor(
    readonly process: GantryProcess,
    readonly url: string,
  ) {}

  static async start(dir: string, models: Readonly<Record<string, unknown>>): Promise<Service> {
    const file = join(dir, 'pipeline.json')
    const pipeline = {
      apiVersion: 'gantry/v1',
      ...noCameras,
      server: { httpPort: 0, metricsPort: 0, grpcPort: 0 },
      store: { path: join(dir, 'data') },
      models,
    }
    writeFileSync(file, JSON.stringify(pipeline))
    const process = new GantryProcess(['serve', '-c', file, '--json'])
    onTestFinished(() => process.kill())
    return new Service(process, await process.httpUrl())
  }

  async readyz(): Promise<Readiness & { status: number }> {
    const answer = await fetch(`${this.url}/readyz`)
    return { ...((await answer.json()) as Readiness), status: answer.status }
  }

  async status(path: string, init: RequestInit = {}): Promise<number> {
    return (await fetch(this.url + path, init)).status
  }

  async index(): Promise<readonly IndexEntry[]> {
    const answer = await fetch(`${this.url}/v2/repository/index`, { method: 'POST' })
    return answer.ok ? ((await answer.json()) as IndexEntry[]) : []
  }

  async load(model: string, config?: string): Promise<Readonly<{ status: number; error: string }>> {
    const body = JSON.stringify(config === undefined ? {} : { parameters: { config } })
    const answer = await fetch(`${this.url}/v2/repository/models/${model}/load`, { method: 'POST', body })
    const text = await answer.text()
    return { status: answer.status, error: text === '' ? '' : (JSON.parse(text) as { error: string }).error }
  }

  /** 200 where the model answers what it was given. */
  infer(model = 'echo'): Promise<number> {
    const tensor = { name: 'in0', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }
    return this.status(`/v2/models/${model}/infer`, {
      method: 'POST',
      body: JSON.stringify({ inputs: [tensor] }),
    })
  }

  isReady(model?: string): Promise<boolean> {
    return until(
      'the service ready',
      async () => {
        const ready = (await this.readyz()).status === 200 && (await this.status('/v2/health/ready')) === 200
        return ready && (await this.infer(model)) === 200
      },
      60_000,
    )
  }

  isNotReady(reason: string): Promise<boolean> {
    return until(
      'the service not ready',
      async () => {
        const { status, reasons } = await this.readyz()
        const told = status === 503 && reasons.some((each) => each.includes(reason))
        return told && (await this.status('/v2/health/ready')) === 400
      },
      60_000,
    )
  }
}

describe('a model repository that cannot be read', { timeout: testMs }, () => {
  it.each(missing)('R24: ends the start with exit code 2 where it %s', (_, make, reason) => {
    const dir = tempDir()
    const repository = make(dir)
    for (const models of [
      { repository },
      { repository: [repositoryIn(dir), repository], control: 'explicit' },
    ]) {
      const { status, stdout, stderr } = runOnPipeline(dir, { ...noCameras, models }, ['serve'])
      expect([status, stdout]).toEqual([2, ''])
      expect(stderr).toContain(`GANTRY_MODEL_NOT_FOUND: cannot read model repository ${repository}: `)
      expect(stderr).toContain(reason)
      expect(stderr).toContain('hint: Set models.repository')
    }
  })

  it.each(missing)('R24: is found by check and models where it %s', async (_, make, reason) => {
    const dir = tempDir()
    const repository = make(dir)
    const models = { repository: [repositoryIn(dir), repository] }
    const check = runOnPipeline(dir, { engines: 0, models }, ['check', '--offline'])
    expect(check.status).toBe(2)
    expect(check.stdout).toContain(`cannot read model repository ${repository}: `)
    expect(check.stdout).toContain(reason)
    expect(check.stdout).toContain('fix: Set models.repository')
    for (const command of [['list'], ['inspect', 'echo']]) {
      const terminal = fakeTerminal({})
      expect(await run(['models', ...command, '-c', check.file], terminal)).toBe(2)
      expect(terminal.stderr()).toContain(`cannot read model repository ${repository}: `)
    }
  })

  it('R24: is looked for from the folder of the pipeline file', () => {
    const dir = tempDir()
    const pipeline = { engines: 0, models: { repository: './nosuch' } }
    const { stdout } = runOnPipeline(dir, pipeline, ['check', '--offline'])
    expect(stdout).toContain(`${join(dir, 'nosuch')}: no such folder`)
  })

  it.each(['none', 'explicit', 'poll'])(
    'R24: that goes while %s serves leaves its models serving, is told, and makes ready again when it is back',
    async (control) => {
      const dir = tempDir()
      const repository = repositoryIn(dir)
      const service = await Service.start(dir, { repository, control, load: ['*'], pollSeconds: 0.2 })
      await service.isReady()
      renameSync(repository, `${repository}.away`)
      await service.isNotReady(`cannot read model repository ${repository}: no such folder`)
      expect(await service.infer()).toBe(200)
      if (control === 'explicit')
        expect(await service.load('other')).toMatchObject({
          error: expect.stringContaining(`${basename(repository)}: no such folder`) as string,
        })
      renameSync(`${repository}.away`, repository)
      await service.isReady()
    },
  )

  it('R24: is waited for by control mode poll, and served when it comes', async () => {
    const dir = tempDir()
    const repository = join(dir, 'late')
    const service = await Service.start(dir, { repository, control: 'poll', pollSeconds: 0.2 })
    expect(await service.readyz()).toMatchObject({ status: 503, ready: false })
    await service.isNotReady(`${repository}: no such folder`)
    renameSync(repositoryIn(dir), repository)
    await service.isReady()
  })
})

describe('model repositories', { timeout: testMs }, () => {
  it('may be empty, which check tells', () => {
    const dir = tempDir()
    mkdirSync(join(dir, 'empty'))
    const models = { repository: join(dir, 'empty'), control: 'explicit' }
    const { status, stdout } = runOnPipeline(dir, { engines: 0, models }, ['check', '--offline'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/empty +warning +it has no models/)
  })

  it('may be given twice, by any path', async () => {
    const dir = tempDir()
    const repository = repositoryIn(dir)
    symlinkSync(repository, join(dir, 'same'))
    const service = await Service.start(dir, {
      repository: [repository, `${repository}/`, join(dir, 'same')],
    })
    await service.isReady()
    expect((await service.index()).map(({ name, state }) => [name, state])).toEqual([['echo', 'READY']])
  })
})

describe('models that cannot be loaded at the start', { timeout: testMs }, () => {
  /** One that serves, one whose file is cut short. */
  function halfBroken(dir: string): string {
    const repository = repositoryIn(dir)
    addModel(repository, 'broken', { onnx: onnx.subarray(0, 60) })
    return repository
  }

  it.each([
    ['all', { control: 'none' }, undefined],
    ['those that are named', { control: 'explicit', load: ['echo', 'broken'] }, undefined],
    ['one that is not there', { control: 'explicit', load: ['echo', 'nowhere'] }, 'nowhere'],
    ['where polling begins', { control: 'poll' }, undefined],
  ])('R70: end the service where models.exitOnError says so: %s', (_, models, named) => {
    const dir = tempDir()
    const settings = { models: { repository: halfBroken(dir), exitOnError: true, ...models }, ...noCameras }
    const { status, stdout, stderr } = runOnPipeline(dir, settings, ['serve'])
    expect(status).toBe(2)
    expect(stdout).not.toContain('is running')
    expect(stderr).toMatch(
      RegExp(
        `a model cannot be loaded at the start, and models.exitOnError is set: ${named ?? 'broken'}: .+`,
      ),
    )
    expect(stderr).toContain('hint')
  })

  it('R70: end nothing where all can be loaded, and later', async () => {
    const dir = tempDir()
    const repository = repositoryIn(dir)
    const service = await Service.start(dir, {
      repository,
      control: 'explicit',
      load: ['*'],
      exitOnError: true,
    })
    await service.isReady()
    addModel(repository, 'broken', { onnx: onnx.subarray(0, 60) })
    expect((await service.load('broken')).status).toBe(400)
    expect(await service.infer()).toBe(200)
  })

  it.each([
    [true, 400],
    [false, 200],
  ])(
    'R70: make the server less ready only where models.strictReadiness is %s',
    async (strictReadiness, status) => {
      const dir = tempDir()
      const service = await Service.start(dir, {
        repository: halfBroken(dir),
        control: 'none',
        strictReadiness,
      })
      await until(
        'the first loads',
        async () =>
          (await service.index()).some(({ name, state }) => name === 'broken' && state === 'UNAVAILABLE'),
        60_000,
      )
      await until('the model that can be loaded', async () => (await service.infer()) === 200, 60_000)
      await expect.poll(() => service.status('/v2/health/ready'), { timeout: 60_000 }).toBe(status)
      expect(await service.status('/v2/models/broken/ready')).toBe(400)
    },
  )
})

describe('configurations that cannot mean what they say', { timeout: testMs }, () => {
  let dir: string
  let repository: string
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'gantry-refused-'))
    repository = repositoryIn(dir)
    for (const { name, text, onnx: model } of tritonRefuses)
      addModel(repository, name, { onnx: model, config: text })
    return () => rmSync(dir, { recursive: true, force: true })
  })

  it('are found by check, each with field and words', () => {
    const { status, stdout } = runOnPipeline(dir, { engines: 0, models: { repository } }, [
      'check',
      '--offline',
      '--json',
    ])
    expect(status).toBe(2)
    const { findings } = JSON.parse(stdout) as {
      findings: { subject: string; state: string; detail: string; fix?: string }[]
    }
    const failed = findings.filter(({ subject, state }) => subject !== 'served models' && state === 'failed')
    expect(failed.map(({ subject }) => subject).sort()).toEqual(
      tritonRefuses.map(({ name }) => `served model ${name}`).sort(),
    )
    for (const { name, field, words } of tritonRefuses) {
      const finding = failed.find(({ subject }) => subject === `served model ${name}`)
      expect(finding?.detail).toContain(field)
      expect(finding?.detail).toContain(words)
      expect(finding?.fix).toBeTruthy()
    }
    expect(findings).toContainEqual(expect.objectContaining({ subject: 'served models', state: 'failed' }))
  })

  it('are not loaded at the start, and the index says why', async () => {
    const service = await Service.start(mkdtempSync(join(dir, 'run-')), { repository })
    const settled = await until(
      'every model loaded or refused',
      async () => {
        const index = await service.index()
        const done = index.every(({ state }) => state === 'READY' || state === 'UNAVAILABLE')
        return index.length === tritonRefuses.length + 1 && done ? index : undefined
      },
      60_000,
    )
    expect(settled.filter(({ state }) => state === 'READY').map(({ name }) => name)).toEqual(['echo'])
    for (const { name, words } of tritonRefuses)
      expect(settled.find((entry) => entry.name === name)?.reason).toContain(words)
  })

  it('are refused by the load API, from the folder and from the request', async () => {
    const service = await Service.start(mkdtempSync(join(dir, 'run-')), {
      repository,
      control: 'explicit',
      load: ['echo'],
    })
    await service.isReady()
    for (const { name, text, words } of tritonRefuses) {
      const loaded = await service.load(name)
      expect(loaded.status).toBeGreaterThanOrEqual(400)
      expect(loaded.error).toContain(words)
      const config = JSON.stringify(parseModelConfig(text, name))
      const replaced = await service.load('echo', config)
      expect(replaced.status).toBeGreaterThanOrEqual(400)
      expect(replaced.error).toContain(words.replaceAll(name, 'echo'))
    }
    expect(await service.infer()).toBe(200)
  })
})

describe('ensembles that do not fit their models', { timeout: testMs }, () => {
  const io = (dims: string) =>
    `input { name: "X" data_type: TYPE_FP32 dims: ${dims} } output { name: "Y" data_type: TYPE_FP32 dims: ${dims} }`
  const step = (model: string, from: string, to: string, input = 'in0') =>
    `step { model_name: "${model}" model_version: -1 input_map { key: "${input}" value: "${from}" } output_map { key: "out0" value: "${to}" } }`
  const ensemble = (steps: string, dims = '[4]', size = 4) =>
    `platform: "ensemble" max_batch_size: ${size} ${io(dims)} ensemble_scheduling { ${steps} }`
  const wrong: [name: string, config: string, words: string][] = [
    ['no_steps', ensemble(''), 'it has no ensemble_scheduling steps'],
    ['no_input', ensemble(step('echo', 'X', 'Y', 'other')), 'step[0] (echo) has no input "other"'],
    ['nowhere', ensemble(step('echo', 'nowhere', 'Y')), 'reads "nowhere", which nothing writes'],
    ['no_output', ensemble(step('echo', 'X', 'Z')), 'no step writes the output "Y"'],
    ['shape', ensemble(step('echo', 'X', 'Y'), '[5]'), 'is TYPE_FP32 [-1, 4], but "X"'],
    ['batch', ensemble(step('echo', 'X', 'Y'), '[4]', 64), 'allows maximum batch size 64'],
    ['inner', ensemble(step('right', 'X', 'Y', 'X')), 'step[0] (right) has no output "out0"'],
    ['version', ensemble(step('echo', 'X', 'Y').replace('-1', '7')), 'needs model "echo"'],
    ['broken', ensemble(step('bad', 'X', 'Y')), "runs model 'bad', which cannot be loaded"],
    ['bad', 'instance_group { count: -1 }', 'has a count of -1'],
    ['remote', 'backend: "kserve"', 'gantry.kserve_addresses is ""'],
  ]

  it('are found by check, and those that fit are not', () => {
    const dir = tempDir()
    const repository = repositoryIn(dir)
    addModel(repository, 'right', { config: ensemble(step('echo', 'X', 'Y')) })
    for (const [name, config] of wrong) addModel(repository, name, { config })
    const { status, stdout } = runOnPipeline(dir, { engines: 0, models: { repository } }, [
      'check',
      '--offline',
      '--json',
    ])
    expect(status).toBe(2)
    const { findings } = JSON.parse(stdout) as { findings: { subject: string; detail: string }[] }
    const served = findings.filter(({ subject }) => subject.startsWith('served model '))
    expect(served.map(({ subject }) => subject.slice('served model '.length)).sort()).toEqual(
      wrong.map(([name]) => name).sort(),
    )
    for (const [name, , words] of wrong)
      expect(served.find(({ subject }) => subject === `served model ${name}`)?.detail).toContain(words)
  })
})

describe('a reshape that fits', { timeout: testMs }, () => {
  it('answers as many values as the shape says', async () => {
    const dir = tempDir()
    const repository = join(dir, 'models')
    const { text, onnx: model } = accepted.find(({ name }) => name === 'reshape_to_more')!
    addModel(repository, 'fits', { onnx: model, config: text })
    const service = await Service.start(dir, { repository })
    await until('the model', async () => (await service.status('/v2/health/ready')) === 200, 60_000)
    const answer = await fetch(`${service.url}/v2/models/fits/infer`, {
      method: 'POST',
      body: JSON.stringify({
        inputs: [{ name: 'in', datatype: 'FP32', shape: [1, 6], data: [1, 2, 3, 4, 5, 6] }],
      }),
    })
    expect(await answer.json()).toMatchObject({
      outputs: [{ name: 'out', shape: [1, 2, 3], data: [1, 1, 1, 1, 1, 1] }],
    })
  })
})
