import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { readStandardInput } from '../../src/config/standard-input.js'
import { freePort } from '../support/free-port.js'
import { until } from '../support/until.js'
import { tempFolder } from '../support/video-clips.js'

const gantry = join(import.meta.dirname, '../../bin/gantry.mjs')
const models = join(import.meta.dirname, '../../models')
const pipeline = 'apiVersion: gantry/v1\ncameras:\n  - { id: dock, url: clips/dock.mp4 }\n'

let folder: Awaited<ReturnType<typeof tempFolder>>
beforeAll(async () => {
  folder = await tempFolder()
  mkdirSync(folder.file('clips'))
  writeFileSync(folder.file('clips/dock.mp4'), '')
})
afterAll(() => folder.remove())

/** What is written to it; `nobody`: it is no pipe; a number: a descriptor. */
type Stdin = string | Uint8Array | number | Readonly<{ nobody: true }>

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

function start(args: readonly string[], stdin: 'pipe' | 'ignore' | number, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [gantry, ...args], {
    cwd: folder.path,
    stdio: [stdin, 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  started.push(child)
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => (said[name] += chunk))
  const ended = once(child, 'close').then(([code]: unknown[]) => ({ code: code as number | null, ...said }))
  return { child, said, ended }
}

async function run(args: readonly string[], stdin: Stdin, env: Record<string, string> = {}) {
  const written = typeof stdin === 'string' || stdin instanceof Uint8Array
  const { child, ended } = start(args, written ? 'pipe' : typeof stdin === 'number' ? stdin : 'ignore', env)
  if (written) {
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(stdin)
  }
  return ended
}

describe('-c -', () => {
  it.each([
    ['YAML', pipeline],
    ['JSON', JSON.stringify({ apiVersion: 'gantry/v1', cameras: [{ id: 'dock', url: 'clips/dock.mp4' }] })],
    ['YAML with a byte order mark and CRLF', `\ufeff${pipeline.replaceAll('\n', '\r\n')}`],
  ])('reads %s from standard input, its paths from the working directory', async (_, given) => {
    const { code, stdout, stderr } = await run(['serve', '-c', '-', '--print-config', '--json'], given)
    expect([code, stderr]).toEqual([0, ''])
    const config = JSON.parse(stdout) as {
      cameras: { id: string }[]
      mediaRoot: string
      models: { repository: string }
    }
    expect(config.cameras.map(({ id }) => id)).toEqual(['dock'])
    expect(config.mediaRoot).toBe(folder.path)
    expect(config.models.repository).toBe(join(folder.path, '../models'))
  })

  it('is meant by GANTRY_CONFIG, too', async () => {
    const { code, stdout } = await run(['serve', '--print-config', '--json'], pipeline, {
      GANTRY_CONFIG: '-',
    })
    expect(code).toBe(0)
    expect(stdout).toContain('clips/dock.mp4')
  })

  it.each(['/dev/stdin', '/proc/self/fd/0', '<(cat pipeline.yaml)'])(
    'is the same as what a shell names: %s',
    async (name) => {
      writeFileSync(folder.file('pipeline.yaml'), pipeline)
      const command = `cat pipeline.yaml | "$0" "$1" serve --print-config --json -c ${name}`
      const child = spawn('bash', ['-c', command, process.execPath, gantry], { cwd: folder.path })
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
      expect(stderr).toBe('')
      expect((JSON.parse(stdout) as { mediaRoot: string }).mediaRoot).toBe(folder.path)
    },
  )

  it.each([
    ['check', ['check', '-c', '-', '--json']],
    ['doctor', ['doctor', '-c', '-', '--json']],
    ['models list', ['models', 'list', '-c', '-', '--json']],
    ['models inspect', ['models', 'inspect', 'ppe_detect', '-c', '-', '--json']],
  ])(
    'is taken by %s',
    async (_, args) => {
      const given = `apiVersion: gantry/v1\nengines: 0\nmodels: { repository: ${models} }\nserver: { httpPort: ${await freePort()}, grpcPort: 0 }\n`
      const { code, stdout, stderr } = await run(args, given)
      expect(stderr).not.toContain('GANTRY_')
      expect(code).toBeLessThanOrEqual(1)
      expect(stdout).not.toBe('')
    },
    60_000,
  )

  it.each([
    ['eval', ['eval', 'ppe_detect', '-c', '-', '--data', 'nowhere']],
    ['optimize', ['optimize', 'ppe_detect', '-c', '-', '--out', 'best']],
    ['batch', ['batch', 'clips', '-c', '-', '-o', 'out.jsonl']],
  ])('is read by %s before anything else is done', async (_, args) => {
    const { code, stderr } = await run(args, '')
    expect(code).toBe(2)
    expect(stderr).toContain('error GANTRY_CONFIG: <stdin>: is empty')
  })

  it.each([
    ['nothing', '', '<stdin>: is empty; see whether the command before the pipe failed, or what < names'],
    ['blanks', ' \n\n', '<stdin>: is empty'],
    ['nobody at all', { nobody: true }, '<stdin>: is empty'],
    ['broken YAML', 'apiVersion: gantry/v1\ncameras: [\n', /<stdin>:\d+:\d+: /],
    [
      'a wrong setting',
      'apiVersion: gantry/v1\nserver: { httpPort: x }\n',
      '<stdin>:2:21: server.httpPort: ',
    ],
    ['17 MiB', Buffer.alloc(17 * 1024 ** 2, 'x'), '<stdin>: has more than 16 MiB'],
    ['no text', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 3]), /<stdin>/],
  ] as const)('is refused with %s, by its name', async (_, given, problem) => {
    const { code, stderr, stdout } = await run(['serve', '-c', '-'], given)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^error GANTRY_CONFIG/)
    if (typeof problem === 'string') expect(stderr).toContain(problem)
    else expect(stderr).toMatch(problem)
    expect(stderr.length).toBeLessThan(2_000)
  })

  it('is empty where it is a folder', async () => {
    const { code, stderr } = await run(['check', '-c', '-'], openSync(folder.path, 'r'))
    expect(code).toBe(2)
    expect(stderr).toContain(
      '<stdin>: is empty; see whether the command before the pipe failed, or what < names',
    )
  })

  it('is refused on a terminal, instead of waiting for somebody who types', async () => {
    const terminal = Object.assign(Readable.from([Buffer.from(pipeline)]), { isTTY: true })
    await expect(readStandardInput(() => terminal)).rejects.toThrow(
      '<stdin>: is a terminal, where nobody writes a pipeline; pipe a pipeline file into it: `gantry serve -c - < FILE`',
    )
  })

  it('is refused beside a list of pictures that comes the same way', async () => {
    const { code, stderr } = await run(['batch', '-', '-c', '-', '-o', 'out.jsonl'], pipeline)
    expect(code).toBe(2)
    expect(stderr).toContain('-c - and the input - would both read standard input')
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 0],
  ] as const)('that never comes does not keep %s from being heard', async (signal, exit) => {
    const { child, ended } = start(['serve', '-c', '-'], 'pipe')
    // More than a pipe holds: it has gone once somebody reads.
    await new Promise((resolve) => child.stdin?.write('#'.repeat(2 ** 21), resolve))
    child.kill(signal)
    const { code, stdout } = await ended
    expect(stdout).toBe('')
    expect(code).toBe(exit)
  })

  it('serves what it was given, until SIGHUP or SIGTERM ends it: there is nothing to read again', async () => {
    const given = `apiVersion: gantry/v1\nengines: 0\nmodels: { repository: ${models}, control: explicit }\nserver: { httpPort: ${await freePort()}, grpcPort: 0 }\nstore: { path: data }\n`
    const { child, said, ended } = start(['serve', '-c', '-', '--json'], 'pipe')
    child.stdin?.end(given)
    await until('the service', () => said.stdout.includes('httpUrl'), 40_000)
    child.kill('SIGHUP')
    const { code } = await ended
    expect(code).toBe(0)
  }, 60_000)
})
