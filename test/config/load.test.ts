import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError, type ConfigProblem } from '../../src/config/config-error.js'
import type { FlagSetting } from '../../src/config/environment.js'
import { unreadable } from '../../src/config/pipeline-text.js'
import { loadPipeline, type SettingSources } from '../../src/config/load.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gantry-config-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
function write(yaml: string): string {
  const path = join(folder, `${++files}.yaml`)
  writeFileSync(path, yaml)
  return path
}

function load(yaml: string, sources?: SettingSources) {
  return loadPipeline(write(`apiVersion: gantry/v1\n${yaml}`), sources).config
}

/** Problems of a file whose first line is `apiVersion`, so that the given text starts at line 2. */
function problemsOf(yaml: string, sources?: SettingSources): readonly ConfigProblem[] {
  try {
    load(yaml, sources)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  throw new Error('the settings were accepted')
}

/** `expect.stringContaining` without its `any`. */
const containing = (text: string): unknown => expect.stringContaining(text)

const flag = (path: string, text: string): FlagSetting => ({ flag: `--set ${path}`, path, text })

describe('loadPipeline', () => {
  it('fills in every default of a file that says nothing', () => {
    expect(load('')).toMatchObject({
      name: 'gantry',
      server: { host: '127.0.0.1', httpPort: 8000 },
      cameras: [],
      engines: 1,
    })
  })

  it('takes the defaults of a section that is there and empty', () => {
    expect(load('server:\ncameras:\nlog:\n').log.level).toBe('info')
  })

  it('starts relative paths at the folder of the file', () => {
    const config = load('models: { repository: ../models }\nstore: { path: ./kept }')
    expect(config.models.repository).toBe(join(folder, '../models'))
    expect(config.store.path).toBe(join(folder, 'kept'))
    expect(config.mediaRoot).toBe(folder)
  })

  it('starts relative paths of flags and environment at the working directory', () => {
    const config = load('', { flags: [flag('store.path', 'kept')], env: { GANTRY__MODELS__REPOSITORY: 'm' } })
    expect(config.store.path).toBe(join(process.cwd(), 'kept'))
    expect(config.models.repository).toBe(join(process.cwd(), 'm'))
  })

  it('puts flags over environment over file over defaults', () => {
    const yaml = 'server: { httpPort: 1 }'
    const env = { GANTRY__SERVER__HTTP_PORT: '2' }
    expect(load('').server.httpPort).toBe(8000)
    expect(load(yaml).server.httpPort).toBe(1)
    expect(load(yaml, { env }).server.httpPort).toBe(2)
    expect(load(yaml, { env, flags: [flag('server.httpPort', '3')] }).server.httpPort).toBe(3)
  })

  it('shares settings between cameras through anchors and merge keys', () => {
    const { cameras } = load(
      'cameras:\n  - &dock { id: a, url: "rtsp://h/1", sampleFps: 9 }\n  - { <<: *dock, id: b }',
    )
    expect(cameras.map(({ id, sampleFps }) => [id, sampleFps])).toEqual([
      ['a', 9],
      ['b', 9],
    ])
  })

  it('works without a file', () => {
    const { config, path, baseDir } = loadPipeline(undefined, { env: { GANTRY__NAME: 'bare' } })
    expect([config.name, path, baseDir]).toEqual(['bare', undefined, process.cwd()])
  })

  it('names a file that does not exist', () => {
    expect(() => loadPipeline(join(folder, 'none.yaml'))).toThrow(/none\.yaml: no such file/)
  })

  it('says that a folder is no file, and that a file is not for this user', () => {
    expect(() => loadPipeline(folder)).toThrow(/: is a folder; name the pipeline file in it$/)
    const denied = Object.assign(new Error('EACCES: permission denied, open'), { code: 'EACCES' })
    expect(unreadable(denied)).toMatchObject({ message: 'this user may not read it' })
  })
})

describe('problems of a pipeline file', () => {
  it('calls what YAML takes for a number and nobody can use by its name', () => {
    expect(
      problemsOf('engines: .nan\nserver: { httpPort: .inf, grpcPort: -.inf }').map((p) => p.message),
    ).toEqual([
      'must be a finite number, not .nan',
      'must be a finite number, not .inf',
      'must be a finite number, not -.inf',
    ])
  })

  it('tells what is wrong with URLs of cameras together with everything else', () => {
    const yaml =
      'cameras:\n  - { id: a, url: "gopher://h" }\n  - { id: b, url: "rtsp://u:c4nary/x@h/1" }\n  - { id: c, url: 5 }\nengines: -1'
    const problems = problemsOf(yaml)
    expect(problems.map(({ line, path }) => [line, path])).toEqual([
      [3, 'cameras[0].url'],
      [4, 'cameras[1].url'],
      [5, 'cameras[2].url'],
      [6, 'engines'],
    ])
    expect(problems[0]).toMatchObject({
      message: 'has the scheme "gopher:", which is not opened',
      hint: containing('use one of rtsp:'),
    })
    expect(JSON.stringify(problems)).not.toContain('c4nary')
  })

  it.each([
    [
      'unknown key',
      'cameras:\n  - { id: a, url: b, sampelFps: 3 }',
      {
        line: 3,
        column: 22,
        path: 'cameras[0].sampelFps',
        message: 'unknown key',
        hint: 'did you mean "sampleFps"?',
      },
    ],
    [
      'option of an execution provider',
      'inference: { cuda: { gpu_memory_limit: 1 } }',
      {
        line: 2,
        column: 22,
        path: 'inference.cuda.gpu_memory_limit',
        message: 'unknown key',
        hint: 'did you mean "gpu_mem_limit"?',
      },
    ],
    [
      'key of another section',
      'httpPort: 80',
      { line: 2, column: 1, path: 'httpPort', message: 'unknown key', hint: 'did you mean server.httpPort?' },
    ],
    [
      'unknown key like no other',
      'log: { zzz: 1 }',
      { line: 2, column: 8, path: 'log.zzz', message: 'unknown key', hint: 'known here: level, format' },
    ],
    [
      'a host name with a port',
      'server: { allowedHosts: [gantry.example, "models.example:8000"] }',
      {
        line: 2,
        column: 42,
        path: 'server.allowedHosts[1]',
        message: 'names a port; write the name alone, for every port: "models.example"',
      },
    ],
    [
      'wrong type',
      'server: { httpPort: many }',
      { line: 2, column: 21, path: 'server.httpPort', message: 'must be a number, not a text' },
    ],
    [
      'cameras without an engine',
      'cameras: [{ id: a, url: "push:" }]\nengines: 0',
      { line: 3, column: 10, path: 'engines', message: 'must be at least 1 where cameras are listed' },
    ],
    [
      'an end on errors that nobody sees',
      'models: { exitOnError: true }',
      {
        line: 2,
        column: 24,
        path: 'models.exitOnError',
        message: expect.stringMatching(/^needs models.control \(none, poll or explicit\)/) as string,
      },
    ],
    [
      'a grace of no age',
      'modelServer: { grpc: { maxConnectionAgeGraceMs: 5000 } }',
      {
        line: 2,
        column: 49,
        path: 'modelServer.grpc.maxConnectionAgeGraceMs',
        message: 'needs maxConnectionAgeMs: without it no connection is too old',
      },
    ],
    [
      'fraction for a whole number',
      'engines: 1.5',
      { line: 2, column: 10, path: 'engines', message: 'must be a whole number, not the number 1.5' },
    ],
    [
      'list for a section',
      'server: [1]',
      { line: 2, column: 9, path: 'server', message: 'must be a section of settings, not a list' },
    ],
    [
      'out of range',
      'server: { httpPort: 70000 }',
      { line: 2, column: 21, path: 'server.httpPort', message: 'must be at most 65535' },
    ],
    [
      'not one of the choices',
      'log: { level: warning }',
      { line: 2, column: 15, path: 'log.level', message: 'must be one of debug, info, warn, error' },
    ],
    [
      'misspelt choice',
      'log: { level: debgu, format: jsn }',
      { line: 2, column: 30, path: 'log.format', hint: 'did you mean "json"?' },
    ],
    [
      'duplicate camera id',
      'cameras:\n  - { id: a, url: b }\n  - { id: a, url: c }',
      {
        line: 4,
        column: 11,
        path: 'cameras[1].id',
        message: containing('already used by cameras[0]'),
      },
    ],
    [
      'duplicate key',
      'engines: 1\nengines: 2',
      { line: 3, column: 1, message: 'this key stands here twice; keep one' },
    ],
    [
      'missing value',
      'cameras:\n  - { id: a }',
      { line: 3, column: 5, path: 'cameras[0].url', message: 'missing: a text is needed' },
    ],
    [
      'bad URL',
      'cache: { redis: "http://h" }',
      { line: 2, column: 17, path: 'cache.redis', message: 'must be a redis:// or rediss:// URL' },
    ],
    [
      'region that leaves the picture',
      'cameras:\n  - { id: a, url: b, region: { x: 0.6, y: 0, width: 0.6, height: 1 } }',
      { line: 3, path: 'cameras[0].region.width', message: 'x + width must be <= 1' },
    ],
    [
      'address of a camera without its scheme',
      'cameras:\n  - { id: a, url: "192.0.2.10/stream" }',
      { path: 'cameras[0].url', message: 'names no scheme', hint: 'write rtsp://host:port/path' },
    ],
    ['broken YAML', 'cameras: [', { line: 2, column: 11 }],
    ['tab for spaces', 'log:\n\tlevel: info', { line: 3, message: 'a tab cannot indent; use spaces' }],
    [
      'forgotten colon',
      'name plant\nengines: 1',
      { line: 2, message: 'no key ends here: write ": " between a key and its value' },
    ],
    ['second document', '---\nengines: 1', { line: 2, message: containing('a second document begins here') }],
    [
      'number for a text',
      'cameras:\n  - { id: 1, url: b }',
      { line: 3, column: 11, message: 'must be a text, not the number 1', hint: 'write it in quotes: "1"' },
    ],
    [
      'one port for two listeners',
      'server: { grpcPort: 9000, metricsPort: 9000 }',
      {
        line: 2,
        column: 21,
        path: 'server.grpcPort',
        message: containing('server.metricsPort takes already'),
      },
    ],
    [
      'port that a default takes',
      'server: { httpPort: 8001 }',
      { path: 'server.grpcPort', message: containing('server.httpPort takes already') },
    ],
    [
      'name that no topic can have',
      'sinks: { kafka: { brokers: ["h:1"], topics: { detections: "a b" } } }',
      { line: 2, path: 'sinks.kafka.topics.detections', message: containing('must be a name of letters') },
    ],
    [
      'name that no topic of dead letters can have',
      'sinks: { kafka: { brokers: ["h:1"], topics: { deadLetter: "a b" } } }',
      { line: 2, path: 'sinks.kafka.topics.deadLetter', message: containing('must be a name of letters') },
    ],
    [
      'dead letters among the results',
      'sinks: { kafka: { brokers: ["h:1"], topics: { deadLetter: gantry.detections.v1 } } }',
      { line: 2, path: 'sinks.kafka.topics.deadLetter', message: containing('must be another topic') },
    ],
    [
      'dead letters switched on without a name',
      'sinks: { kafka: { brokers: ["h:1"], topics: { deadLetter: true } } }',
      { line: 2, path: 'sinks.kafka.topics.deadLetter', message: containing('false') },
    ],
    [
      'example copied as it stands',
      'cameras:\n  - { id: a, url: "rtsp://..." }',
      { line: 3, path: 'cameras[0].url', message: 'names an impossible host' },
    ],
    [
      'alias of nothing',
      'server: *none',
      { line: 2, column: 9, message: 'no anchor &none stands before this alias' },
    ],
    [
      'prototype as a key',
      '__proto__: { polluted: true }',
      { line: 2, column: 1, path: '__proto__', message: 'unknown key' },
    ],
  ])('%s', (_, yaml, problem) => {
    expect(problemsOf(yaml)).toContainEqual(expect.objectContaining(problem))
  })

  it('tells all of them at once, in the order of the file', () => {
    const problems = problemsOf(
      'nam: x\nserver: { httpPort: 1.5 }\ncameras:\n  - { id: a, url: b, transport: tpc }\n  - { id: a, url: c }',
    )
    expect(problems.map(({ line, path }) => [line, path])).toEqual([
      [2, 'nam'],
      [3, 'server.httpPort'],
      [5, 'cameras[0].transport'],
      [6, 'cameras[1].id'],
    ])
  })

  it('shows each as file:line:column, path, message and hint', () => {
    const path = write('apiVersion: gantry/v1\nengine: 2\n')
    expect(() => loadPipeline(path)).toThrow(`${path}:2:1: engine: unknown key; did you mean "engines"?`)
  })

  it('lets listeners share a port where that can be', () => {
    expect(load('server: { httpPort: 0, grpcPort: 0, metricsPort: 0 }').server.grpcPort).toBe(0)
    expect(load('server: { httpPort: 9000, metricsPort: 9000 }').server.metricsPort).toBe(9000)
    expect(load('modelServer: { enabled: false }\nserver: { httpPort: 8001 }').server.httpPort).toBe(8001)
  })

  it('wants the version of the format', () => {
    const path = write('name: x\n')
    expect(() => loadPipeline(path)).toThrow('apiVersion: missing: must be gantry/v1')
  })

  it('refuses aliases that would fill the memory', () => {
    const doubled = Array.from({ length: 30 }, (_, n) => `x${n + 1}: &x${n + 1} [*x${n}, *x${n}]`)
    expect(problemsOf(['x0: &x0 [a]', ...doubled].join('\n'))).toEqual([
      expect.objectContaining({ message: containing('alias') }),
    ])
  })

  it('refuses a text that is no section', () => {
    const path = write('just words\n')
    expect(() => loadPipeline(path)).toThrow(`${path}:1:1: must be a section of settings`)
  })

  it('never repeats a secret', () => {
    const text = problemsOf('server: { token: hunter2 }\nsinks: { kafka: { brokers: ["u:canary@h"] } }')
    expect(JSON.stringify(text)).not.toMatch(/hunter2|canary/)
  })
})

describe('interpolation', () => {
  it('fills variables, defaults and files into strings', () => {
    writeFileSync(join(folder, 'token'), 'from-a-mounted-file\n')
    const config = load(
      'name: ${A}-${B:-b}\nserver: { token: "${file:token}" }\ncameras: [{ id: c, url: "rtsp://u:${PW}@h/$${x}" }]',
      { env: { A: 'a', B: '', PW: 'p@ss' } },
    )
    expect(config.name).toBe('a-b')
    expect(config.server.token).toBe('from-a-mounted-file')
    expect(config.cameras[0]?.url).toBe('rtsp://u:p@ss@h/${x}')
  })

  it('gives numbers and booleans to settings that want them', () => {
    const config = load('server: { httpPort: "${PORT}", insecure: "${OPEN}" }', {
      env: { PORT: '81', OPEN: 'true' },
    })
    expect([config.server.httpPort, config.server.insecure]).toEqual([81, true])
  })

  it.each([
    ['an unset variable', '${NONE}', 'the environment variable NONE is not set'],
    ['an unreadable file', '${file:/nowhere/token}', 'cannot read the value from /nowhere/token'],
    ['anything else', '${a b}', '"${a b}" is not understood'],
  ])('complains once about %s, at its place', (_, text, message) => {
    expect(problemsOf(`server:\n  token: '${text}'`)).toEqual([
      expect.objectContaining({
        line: 3,
        column: 10,
        path: 'server.token',
        message: containing(message),
      }),
    ])
  })

  it('does not ask for a variable whose setting comes from elsewhere', () => {
    const env = { GANTRY__SERVER__TOKEN: 'sixteen-characters' }
    expect(load('server: { token: "${NONE}" }', { env }).server.token).toBe('sixteen-characters')
  })
})

describe('environment', () => {
  it.each([
    ['GANTRY__ENGINES', '3', { engines: 3 }],
    ['GANTRY__SERVER__HTTPPORT', '3', { server: { httpPort: 3 } }],
    ['GANTRY__SERVER__HTTP_PORT', '3', { server: { httpPort: 3 } }],
    ['GANTRY__SERVER__INSECURE', 'true', { server: { insecure: true } }],
    ['GANTRY__INFERENCE__PROVIDERS', '["cpu"]', { inference: { providers: ['cpu'] } }],
    ['GANTRY__SINKS__KAFKA', '{"brokers":["h:1"]}', { sinks: { kafka: { brokers: ['h:1'] } } }],
    ['GANTRY__CAMERAS__0__URL', 'other', { cameras: [{ id: 'a', url: 'other' }] }],
  ])('%s=%s', (name, text, settings) => {
    expect(load('cameras: [{ id: a, url: u }]', { env: { [name]: text } })).toMatchObject(settings)
  })

  it('reads a setting from the file that NAME_FILE points at', () => {
    const secret = write('a-secret-of-many-letters\n')
    expect(load('', { env: { GANTRY__SERVER__TOKEN_FILE: secret } }).server.token).toBe(
      'a-secret-of-many-letters',
    )
  })

  it.each([
    [
      'GANTRY__SERVR__HOST',
      'x',
      { message: 'no setting has this name', hint: 'did you mean GANTRY__SERVER__HOST?' },
    ],
    ['GANTRY__ENGINES', 'two', { message: 'must be a number, not a text' }],
    ['GANTRY__CAMERAS', '[{"id":"a"}]', { message: 'cameras[0].url: missing: a text is needed' }],
    ['GANTRY__SERVER__TOKEN_FILE', '/nowhere', { message: containing('ENOENT') }],
  ])('blames the variable in %s=%s', (name, text, problem) => {
    expect(problemsOf('', { env: { [name]: text } })).toEqual([
      expect.objectContaining({ file: 'environment', path: name, ...problem }),
    ])
  })
})

describe('flags', () => {
  it('reach into lists', () => {
    const flags = [flag('cameras[0].id', 'a'), flag('cameras.0.url', 'u')]
    expect(load('', { flags }).cameras).toMatchObject([{ id: 'a', url: 'u' }])
  })

  it('are blamed by name', () => {
    expect(problemsOf('', { flags: [flag('server.htpPort', '1'), flag('engines', '-1')] })).toEqual([
      {
        file: 'command line',
        path: '--set server.htpPort',
        message: 'no setting is named "server.htpPort"',
        hint: 'did you mean "server.httpPort"?',
      },
      { file: 'command line', path: '--set engines', message: 'must be at least 0' },
    ])
  })

  it.each([
    [['cameras[1].sampleFps', '2']],
    [['cameras[4294967296].id', 'x']],
    [['cameras[7]', '{"id":"x","url":"push:"}']],
  ] as const)('does not begin a list in the middle: %j', ([path, text]) => {
    expect(problemsOf('', { flags: [flag(path, text)] })).toEqual([
      {
        file: 'command line',
        path: `--set ${path}`,
        message: 'cameras has no entries',
        hint: 'the next is cameras[0]',
      },
    ])
  })

  it('goes on with a list whatever order the environment has, and names the variable that made an entry', () => {
    const env = {
      GANTRY__CAMERAS__1__ID: 'b',
      GANTRY__CAMERAS__1__URL: 'push:',
      GANTRY__CAMERAS__0__URL: 'push:',
    }
    const { cameras } = load('', { env: { ...env, GANTRY__CAMERAS__0__ID: 'a' } })
    expect(cameras.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(problemsOf('', { env: { GANTRY__CAMERAS__0__ID: 'a' } })).toEqual([
      {
        file: 'environment',
        path: 'GANTRY__CAMERAS__0__ID',
        message: 'cameras[0].url: missing: a text is needed',
      },
    ])
  })

  it('lets a variable of one setting go before that of its section', () => {
    const env = { GANTRY__SERVER__HTTP_PORT: '1', GANTRY__SERVER: '{"httpPort":2,"grpcPort":3}' }
    expect(load('', { env }).server).toMatchObject({ httpPort: 1, grpcPort: 3 })
  })

  it('refuses two variables for one setting', () => {
    const env = { GANTRY__SERVER__HTTPPORT: '1', GANTRY__SERVER__HTTP_PORT: '2' }
    expect(problemsOf('', { env })).toEqual([
      {
        file: 'environment',
        path: 'GANTRY__SERVER__HTTP_PORT',
        message: 'sets server.httpPort, and so does GANTRY__SERVER__HTTPPORT',
        hint: 'unset one of them',
      },
    ])
  })

  it('tells a ${...} that must be quoted once, and not all that it breaks', () => {
    const problems = problemsOf('server: { httpPort: ${PORT:-8000}, host: x }\nname: x')
    expect(problems).toEqual([
      expect.objectContaining({
        line: 2,
        message: 'inside { } and [ ] a ${...} must stand in quotes: "${...}"',
      }),
    ])
  })

  it('refuses a ${ that is not closed', () => {
    expect(problemsOf('cameras: [{ id: a, url: "rtsp://u:${PASS@h/1" }]')).toEqual([
      expect.objectContaining({ path: 'cameras[0].url', message: 'a "${" has no "}"' }),
    ])
    expect(load('cameras: [{ id: a, url: "rtsp://u:$${PASS@h/1" }]').cameras[0]?.url).toBe(
      'rtsp://u:${PASS@h/1',
    )
  })

  it('refuses a broker at a port that cannot be', () => {
    expect(problemsOf('sinks: { kafka: { brokers: ["h:65536"] } }')).toEqual([
      expect.objectContaining({ path: 'sinks.kafka.brokers[0]', message: 'the port must be at most 65535' }),
    ])
  })
})

describe('GPUs', () => {
  it('are one by default, a list, or all', () => {
    expect(load('').inference).not.toHaveProperty('devices')
    expect(load('inference: { devices: [1, 0] }').inference.devices).toEqual([1, 0])
    expect(load('inference: { devices: auto }').inference.devices).toBe('auto')
    expect(load('inference: { deviceId: 1 }').inference).toMatchObject({ deviceId: 1 })
  })

  it('come from the environment and from flags as well', () => {
    const env = (text: string) => load('', { env: { GANTRY__INFERENCE__DEVICES: text } }).inference.devices
    expect(env('auto')).toBe('auto')
    expect(env('[0, 1]')).toEqual([0, 1])
    expect(load('', { flags: [flag('inference.devices', '[2]')] }).inference.devices).toEqual([2])
  })

  it.each([
    ['devices: all', 'inference.devices', 'must be auto, or a list of numbers of GPUs, such as [0, 1]'],
    ['devices: []', 'inference.devices', 'must have at least 1 entry'],
    ['devices: [-1]', 'inference.devices[0]', 'must be at least 0'],
    ['devices: [0.5]', 'inference.devices', 'must be auto, or a list of numbers of GPUs, such as [0, 1]'],
    ['devices: 0', 'inference.devices', 'must be auto, or a list of numbers of GPUs, such as [0, 1]'],
    ['devices: [0, 1, 0]', 'inference.devices[2]', 'GPU 0 is devices[0] already; write it once'],
    [
      'devices: [0], deviceId: 1',
      'inference.deviceId',
      'must not stand beside devices, which takes its place: leave deviceId out',
    ],
    ['deviceId: -1', 'inference.deviceId', 'must be at least 0'],
  ])('are refused by name: %s', (text, path, message) => {
    expect(problemsOf(`inference: { ${text} }`)).toMatchObject([{ path, message }])
  })
})

it.each([
  ['a space', 'sixteen characters'],
  ['a space at its end', 'sixteen-characters '],
  ['a tab', 'sixteen\tcharacters'],
  ['a line break inside', 'sixteen\ncharacters'],
  ['NUL', 'sixteen\0characters'],
  ['DEL', 'sixteen\x7fcharacters'],
  ['a space of another kind', 'sixteen\u00a0characters'],
])('S30: refuses a token with %s, which no client can send', (_, token) => {
  expect(problemsOf(`server: { token: ${JSON.stringify(token)} }`)).toMatchObject([
    { path: 'server.token', message: expect.stringContaining('which no client can send') as unknown },
  ])
})
