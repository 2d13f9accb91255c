import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { platforms } from '../../scripts/lib/pack/platforms.mjs'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const git = (args: readonly string[], cwd: string) => {
  const { status, stdout, stderr } = spawnSync('git', args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const shipped = [
  'bin',
  'models',
  'pipelines',
  'python',
  'schemas',
  'examples',
  'docs',
  'deploy/systemd',
  'deploy/grafana',
]

/** A copy of the repository as a commit has it, with the packages of this one. */
function clone(): string {
  const folder = join(tempDir(), 'clone')
  const files = git(['ls-files', '-z', '--cached', '--others', '--exclude-standard'], root).split('\0')
  for (const file of files.filter((path) => path !== '' && !/^(?:test|training|web|sim)\//.test(path))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  git(['init', '--quiet'], folder)
  git(['add', '--all'], folder)
  git(['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '-m', 'a'], folder)
  return folder
}

function pack(folder: string, args: readonly string[]) {
  const script = join(folder, 'scripts/pack.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** What `npm pack` by itself would take. */
function packedByNpm(folder: string): string[] {
  const { stdout, stderr } = spawnSync('npm', ['pack', '--dry-run', '--json'], {
    cwd: folder,
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error(stderr)
  const answer = JSON.parse(stdout) as Report[] | Record<string, Report>
  return Object.values(answer).flatMap(({ files }) => files.map(({ path }) => path))
}
type Report = Readonly<{ files: readonly Readonly<{ path: string }>[] }>

describe('npm run pack', () => {
  it.each([
    [[], 'for which platform?'],
    [['win32-x64'], 'there is no package for "win32-x64"'],
    [['linux'], 'there is no package for "linux"'],
    [['constructor'], 'there is no package for "constructor"'],
    [['linux-x64', 'linux-arm64'], '"linux-arm64" is not understood'],
    [['linux-x64', '--out'], '--out wants a folder'],
  ])('R92: %j is answered by what can be asked for', (args, problem) => {
    const { status, stdout, stderr } = pack(root, args)
    expect([status, stdout]).toEqual([2, ''])
    expect(stderr).toBe(`[pack] ${problem}\n[pack] npm run pack -- linux-x64 | linux-arm64 [--out FOLDER]\n`)
  })

  it('R92: says what to do where there is nothing to build with, or no git', () => {
    const folder = clone()
    rmSync(join(folder, '.git'), { recursive: true })
    expect(pack(folder, ['linux-x64']).stderr).toMatch(
      /^\[pack\] git tells which files belong .*not a git repository/,
    )
    rmSync(join(folder, 'node_modules'))
    expect(pack(folder, ['linux-x64'])).toMatchObject({
      status: 1,
      stderr: '[pack] the packages to build with are missing or old: npm ci\n',
    })
  })

  it('has the platforms that the inventory and the lock file have', () => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: object }
    for (const { os, cpu } of Object.values(platforms))
      expect(lock.packages).toHaveProperty([`node_modules/@img/sharp-${os}-${cpu}`])
  })
})

describe('npm pack', () => {
  it('R92, S33: takes what `files` names, and nothing that lies about', () => {
    const folder = clone()
    const strays = [
      '.env',
      'stray.txt',
      'data/demo/cameras.json',
      'deploy/compose/token',
      'deploy/systemd/token',
      'docs/notes.txt',
      'dist/.stamp-server',
      'dist/cli/main.js.map',
      'examples/consumers/__pycache__/consumer.pyc',
      'examples/consumers/.env',
      'models/mine/1/model.onnx',
      'models/ppe_detect/2/model.onnx',
      'pipelines/plant.yaml',
      'python/.venv/bin/python',
      'src/stray.ts',
      'test/a.test.ts',
    ]
    for (const path of [...strays, 'dist/cli/main.js', 'dist/backends/js/js-model.d.ts']) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), '')
    }
    const files = packedByNpm(folder)
    expect(files.filter((path) => strays.includes(path))).toEqual([])
    expect(files.filter((path) => /^(?:test|src|scripts|training|sim|web)\//.test(path))).toEqual([])
    for (const needed of [
      'bin/gantry.mjs',
      'dist/cli/main.js',
      'dist/backends/js/js-model.d.ts',
      'models/ppe_detect/1/model.onnx',
      'pipelines/demo/clips/dock.mp4',
      'python/requirements.txt',
      'schemas/pipeline.schema.json',
      'LICENSE',
    ])
      expect(files).toContain(needed)
  }, 60_000)

  it('names every file of the folders that are given away', () => {
    const tracked = git(['ls-files', ...shipped], root)
      .trim()
      .split('\n')
    const files = packedByNpm(root)
    const absent = tracked.filter((path) => !files.includes(path) && !path.endsWith('.truth.json'))
    expect(absent).toEqual([])
  }, 60_000)
})
