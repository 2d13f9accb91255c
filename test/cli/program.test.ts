import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../src/cli/program.js'
import { packageVersion } from '../../src/lifecycle/installation.js'
import { fakeTerminal } from '../support/fake-terminal.js'

async function gantry(args: readonly string[], env: Record<string, string> = {}) {
  const terminal = fakeTerminal(env)
  const code = await run(args, terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gantry-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function pipeline(yaml: string): string {
  const path = join(folder, 'pipeline.yaml')
  writeFileSync(path, `apiVersion: gantry/v1\n${yaml}`)
  return path
}

const models = join(import.meta.dirname, '../../models')

describe('gantry', () => {
  it.each([
    [['--help'], 'Usage: gantry'],
    [['serve', '--help'], 'Usage: gantry serve'],
    [['check', '--help'], 'Usage: gantry check'],
    [['doctor', '--help'], 'Usage: gantry doctor'],
    [['models', '--help'], 'Usage: gantry models'],
    [['eval', '--help'], 'Usage: gantry eval'],
    [['completion', '--help'], 'Usage: gantry completion'],
    [['gpu', '--help'], 'Usage: gantry gpu'],
    [['gpu', 'install', '--help'], 'Usage: gantry gpu install'],
    [['models', 'list', '--help'], 'Usage: gantry models list'],
    [['models', 'inspect', '--help'], 'Usage: gantry models inspect'],
    [['help', 'serve'], 'Usage: gantry serve'],
    [['--version'], packageVersion()],
  ])('%j is data on stdout', async (args, text) => {
    const { code, stdout, stderr } = await gantry(args)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(text)
  })

  it('names the global options at every level', async () => {
    expect((await gantry(['models', 'list', '--help'])).stdout).toContain('--json')
  })

  it.each([
    [['serv'], "unknown command 'serv'", 'Did you mean serve?'],
    [['serve', '--confg', 'x'], "unknown option '--confg'", 'Did you mean --config?'],
    [['models', 'lst'], "unknown command 'lst'", 'Did you mean list?'],
    [['models', 'inspect'], "missing required argument 'model'", 'gantry models inspect --help'],
    [['eval', 'a', '--dta', 'x'], "unknown option '--dta'", 'Did you mean --data?'],
    [['batch', 'a.jpg', '--uot', 'x.csv'], "unknown option '--uot'", 'Did you mean --out?'],
    [['models', 'split', 'a', '--stage', '2'], "unknown option '--stage'", 'Did you mean --stages?'],
    [
      ['eval', 'a'],
      "required option '-d, --data <path>' not specified",
      '--data is: data.yaml of a YOLO set',
    ],
    [['batch', 'a.jpg'], "required option '-o, --out <file>' not specified", '--out is: where results go'],
    [['eval', '-m', 'a', '--data', 'x'], "unknown option '-m'", 'without an option: `gantry eval MODEL`'],
    [['optimize', '--model', 'a'], "unknown option '--model'", '`gantry optimize MODEL`'],
    [['models', 'inspect', '-m', 'a'], "unknown option '-m'", '`gantry models inspect MODEL`'],
    [['perf', 'ppe_detect'], "too many arguments for 'perf'", 'named with -m MODEL'],
    [['serve', 'plant.yaml'], "too many arguments for 'serve'", 'named with -c FILE'],
    [['serve'], 'no pipeline file was named', '-c FILE'],
    [['serve', '-c', 'x.yaml', '--set', 'engines'], '--set engines: no "=" in it', '--set key=value'],
  ])('%j is a usage error with a way out', async (args, message, hint) => {
    const { code, stdout, stderr } = await gantry(args)
    expect([code, stdout]).toEqual([2, ''])
    const [error, help] = stderr.split('\n')
    expect(error).toContain(`error GANTRY_USAGE: ${message}`)
    expect(help).toMatch(/^hint: /)
    expect(help).toContain(hint)
  })

  it.each([
    [[], 'Usage: gantry [options]'],
    [['models'], 'Usage: gantry models [options]'],
  ])('%j shows its own help on stderr and is no success', async (args, usage) => {
    const { code, stdout, stderr } = await gantry(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr.split('\n')[0]).toContain(usage)
    expect(JSON.parse((await gantry([...args, '--json'])).stderr)).toMatchObject({
      error: { code: 'GANTRY_USAGE' },
    })
  })

  it('tells every problem of a pipeline file and no stack', async () => {
    const path = pipeline('enginez: 1\nserver: { httpPort: x }')
    const { code, stdout, stderr } = await gantry(['serve', '-c', path])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      'error GANTRY_CONFIG:\n' +
        `${path}:2:1: enginez: unknown key; did you mean "engines"?\n` +
        `${path}:3:21: server.httpPort: must be a number, not a text\n` +
        'hint: Every setting is described in docs/configuration.md; `gantry check -c FILE` looks again.\n',
    )
  })

  it('shows the stack with --debug', async () => {
    expect((await gantry(['serve', '-c', '/nowhere.yaml', '--debug'])).stderr).toMatch(/\n {4}at /)
  })

  it.each([
    ['an error of ours', ['serve', '-c', '/nowhere.yaml', '--json'], 'GANTRY_CONFIG'],
    ['a usage error', ['--json', 'serv'], 'GANTRY_USAGE'],
  ])('reports %s as a JSON line with --json', async (_, args, code) => {
    const { stderr } = await gantry(args)
    expect(JSON.parse(stderr)).toMatchObject({ error: { code } })
  })

  it('takes the pipeline file from the environment of the process', async () => {
    process.env.GANTRY_CONFIG = pipeline('name: from-env')
    try {
      expect((await gantry(['serve', '--print-config'])).stdout).toContain('name: from-env')
    } finally {
      delete process.env.GANTRY_CONFIG
    }
  })

  it('prints the settings in force with secrets masked', async () => {
    const path = pipeline('cameras: [{ id: a, url: "rtsp://u:canary@h/1" }]')
    const args = [
      'serve',
      '-c',
      path,
      '--print-config',
      '--http-port',
      '81',
      '--grpc-port',
      '82',
      '--set',
      'cameras[0].sampleFps=2',
    ]
    const { code, stdout } = await gantry(args, { GANTRY__SERVER__TOKEN: 'canary-canary-canary' })
    expect(code).toBe(0)
    expect(stdout).toContain('httpPort: 81')
    expect(stdout).toContain('grpcPort: 82')
    expect(stdout).toContain('sampleFps: 2')
    expect(stdout).not.toContain('canary')
    const json = await gantry([...args, '--json'], { GANTRY__SERVER__TOKEN: 'canary-canary-canary' })
    expect(JSON.parse(json.stdout)).toMatchObject({ server: { httpPort: 81, token: '***' } })
    expect(json.stdout).not.toContain('canary')
  })
})

describe('gantry models', () => {
  it('lists the models of the installation', async () => {
    const { code, stdout } = await gantry(['models', 'list', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ repository: models })
    expect(stdout).toContain('"name": "ppe"')
  })

  it('shows them as a table for people', async () => {
    const { stdout } = await gantry(['models', 'list', '-r', models])
    expect(stdout).toMatch(/^MODEL +BACKEND +VERSIONS/)
    expect(stdout).toMatch(/^ppe +ensemble +1 +ok$/m)
  })

  it('looks in every repository of the pipeline file', async () => {
    const examples = join(models, '../examples/attributes/models')
    const file = pipeline(`models: { repository: [${examples}, ${models}] }`)
    const list = await gantry(['models', 'list', '--json', '-c', file])
    expect(JSON.parse(list.stdout)).toMatchObject({
      repository: examples,
      repositories: [examples, models],
      models: expect.arrayContaining([
        expect.objectContaining({ name: 'ppe_place', ok: true }),
        expect.objectContaining({ name: 'ppe_detect', ok: true }),
      ]) as object,
    })
    const { code, stdout } = await gantry(['models', 'inspect', 'ppe_place', '-c', file])
    expect(code).toBe(0)
    expect(stdout).toContain('detector: ppe_detect')
  })

  it('inspects the ensemble behind the cameras', async () => {
    const { stdout } = await gantry([
      'models',
      'inspect',
      'ppe',
      '-c',
      pipeline(`models: { repository: ${models} }`),
    ])
    expect(stdout).toContain('detection_head')
    expect(stdout).toMatch(/labels: .*helmet/)
  })

  it('names the models there are when one is not', async () => {
    const { code, stderr } = await gantry(['models', 'inspect', 'pep'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/error GANTRY_MODEL_NOT_FOUND: .*"pep"/)
    expect(stderr).toMatch(/hint: .*ppe/)
  })
})

describe('gantry check', () => {
  it('is content with a pipeline that would run', async () => {
    const path = pipeline(
      `models: { repository: ${models} }\ncameras: [{ id: a, url: "rtsp://127.0.0.1/1" }]`,
    )
    const { code, stdout } = await gantry(['check', '-c', path, '--json', '--offline'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ok: true })
  })

  it('fails for an address that the service would refuse', async () => {
    const path = pipeline(
      `models: { repository: ${models} }\nserver: { host: 0.0.0.0 }\ncameras: [{ id: a, url: "push:" }]`,
    )
    const args = ['check', '-c', path, '--json', '--offline']
    const { code, stdout } = await gantry(args)
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      findings: expect.arrayContaining([
        expect.objectContaining({ subject: 'address', state: 'failed' }),
      ]) as unknown,
    })
    expect((await gantry([...args, '--set', 'server.insecure=true'])).code).toBe(0)
  })

  it('fails for a model that is not there and brokers that do not answer', async () => {
    const path = pipeline(
      `models: { repository: ${models} }\nensemble: nope\ncache: { redis: "redis://u:canary@127.0.0.1:1" }\n` +
        'sinks: { kafka: { brokers: ["127.0.0.1:1"] } }',
    )
    const { code, stdout } = await gantry(['check', '-c', path])
    expect(code).toBe(2)
    expect(stdout).toMatch(/^model nope +failed/m)
    expect(stdout).toMatch(/^kafka 127\.0\.0\.1:1 +failed +.*ECONNREFUSED/m)
    expect(stdout).toMatch(/^redis redis:\/\/\*\*\*@127\.0\.0\.1:1 +failed +.*ECONNREFUSED/m)
    expect(stdout).not.toContain('canary')
  })

  it('asks nobody when it is told to stay offline', async () => {
    const path = pipeline(
      `models: { repository: ${models} }\ncache: { redis: "redis://127.0.0.1:1" }\ncameras: [{ id: a, url: "rtsp://h/1" }]`,
    )
    const { code, stdout } = await gantry(['check', '-c', path, '--offline'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^redis .* skipped +offline$/m)
  })

  it('prints only what failed with --quiet', async () => {
    const path = pipeline(`models: { repository: ${models} }\nensemble: nope`)
    const { stdout } = await gantry(['check', '-c', path, '--offline', '--quiet'])
    expect(stdout).toContain('model nope')
    expect(stdout).not.toContain('settings')
  })
})

describe('gantry doctor', () => {
  it('looks at everything and gives the fix for what is wrong', async () => {
    const { stdout } = await gantry(['doctor', '--json'])
    const { findings } = JSON.parse(stdout) as {
      findings: { subject: string; state: string; fix?: string }[]
    }
    const subjects = findings.map(({ subject }) => subject)
    for (const subject of [
      'node',
      'ffmpeg',
      'setpriv',
      'onnxruntime',
      'provider cpu',
      'gpu',
      'model ppe',
      'port 8000',
      'port 8001',
      'kafka',
      'redis',
    ])
      expect(subjects).toContain(subject)
    for (const { state, fix } of findings) if (state === 'failed') expect(fix).toBeTruthy()
  })

  it('finds a port that is taken, a model and brokers that are missing, each with its fix', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const path = pipeline(
      [
        `server: { httpPort: ${port}, metricsPort: 0, grpcPort: 0 }`,
        'models: { repository: ./none }',
        'ensemble: nope',
        'sinks: { kafka: { brokers: ["127.0.0.1:1"] } }',
        'cache: { redis: "redis://user:c4nary@127.0.0.1:1" }',
      ].join('\n'),
    )
    const { code, stdout } = await gantry(['doctor', '-c', path, '--json'])
    other.close()
    const { findings } = JSON.parse(stdout) as {
      findings: { subject: string; state: string; fix?: string }[]
    }
    const wrong = findings.filter(({ subject }) => /^(port|model|kafka|redis) /.test(subject))
    expect(wrong.map(({ subject, state }) => [subject, state])).toEqual([
      ['model nope', 'failed'],
      [`port ${port}`, 'warning'],
      ['kafka 127.0.0.1:1', 'failed'],
      ['redis redis://***@127.0.0.1:1', 'failed'],
    ])
    for (const { fix } of wrong) expect(fix).toBeTruthy()
    expect([code, stdout.includes('c4nary')]).toEqual([1, false])
  })
})
