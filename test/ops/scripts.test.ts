import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bestNode, nodeProblem } from '../../scripts/lib/node-version.mjs'
import { testNode } from '../../scripts/lib/other-node.mjs'
import { packagesAreCurrent } from '../../scripts/lib/npm-packages.mjs'
import { countPytest, countVitest, countsLine, sum } from '../../scripts/lib/test-counts.mjs'
import { outdatedNode } from '../../scripts/lib/test-tools.mjs'
import { bestNode as bestNodeOfCli, isNodeNewEnough } from '../../src/cli/node-version.js'

const root = join(import.meta.dirname, '../..')

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gantry-scripts-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('set-up', () => {
  it.each([
    ['22.16.0', true],
    ['22.16.1', true],
    ['24.0.0', true],
    ['26.12.1', true],
    ['22.15.1', false],
    ['20.20.2', false],
    ['18.20.8', false],
  ])('Node %s is good enough: %s', (version, good) => {
    expect(nodeProblem(version) === undefined).toBe(good)
    expect(isNodeNewEnough(version)).toBe(good)
  })

  it('recommends one version everywhere', () => {
    const read = (path: string) => readFileSync(join(root, path), 'utf8')
    expect(read('.nvmrc').trim()).toBe(String(bestNode))
    expect(bestNodeOfCli).toBe(bestNode)
    expect(read('Dockerfile').match(/node:\d+/g)).toEqual([`node:${bestNode}`, `node:${bestNode}`])
    expect(read('package.json')).toContain(`"@types/node": "^${bestNode}.`)
  })

  it('tells in one line what is missing where it may not install it', () => {
    symlinkSync(process.execPath, join(folder, 'node'))
    const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, 'scripts/start.mjs')], {
      env: { PATH: folder, GANTRY_NO_APT: '1' },
      encoding: 'utf8',
    })
    expect(stderr.trim()).toBe(
      '[set-up] missing: ffmpeg (decodes the cameras). Install it: sudo apt-get install ffmpeg',
    )
    expect([status, stdout]).toEqual([1, ''])
  })

  const lib = (version: string) => ({ version, integrity: `sha512-${version}` })
  it.each([
    ['are current when each is there', { 'node_modules/a': lib('1') }, { 'node_modules/a': lib('1') }, true],
    ['are not with another version', { 'node_modules/a': lib('2') }, { 'node_modules/a': lib('1') }, false],
    ['are not when one is absent', { 'node_modules/a': lib('1') }, {}, false],
    ['may lack what is for other platforms', { 'node_modules/a': { ...lib('1'), optional: true } }, {}, true],
    ['are not before the first install', { 'node_modules/a': lib('1') }, undefined, false],
  ])('npm packages %s', (_, locked, installed, current) => {
    expect(packagesAreCurrent({ '': {}, ...locked }, installed)).toBe(current)
  })
})

describe('npx gantry', () => {
  it('says how to build where nothing is built, and runs what is built later, however often', () => {
    const clone = mkdtempSync(join(folder, 'clone-'))
    for (const name of ['package.json', 'bin'])
      cpSync(join(root, name), join(clone, name), { recursive: true })
    const gantry = () => {
      const env = { ...process.env, npm_config_cache: join(folder, 'npm-cache'), npm_config_offline: 'true' }
      const { status, stdout, stderr } = spawnSync('npx', ['gantry', 'check'], {
        cwd: clone,
        encoding: 'utf8',
        env,
      })
      return [status, stdout, stderr]
    }
    expect(gantry()).toEqual([2, '', expect.stringMatching(/^error: .* is not built\nhint: .*npm run build/)])
    for (const build of ['first', 'second']) {
      rmSync(join(clone, 'dist'), { recursive: true, force: true })
      mkdirSync(join(clone, 'dist/cli'), { recursive: true })
      // As the compiler writes it: not executable.
      const main = `console.log('${build}', process.argv.slice(2).join(' '))`
      writeFileSync(join(clone, 'dist/cli/main.js'), main, { mode: 0o644 })
      expect(gantry()).toEqual([0, `${build} check\n`, ''])
    }
  }, 60_000)
})

const oldNode = testNode(outdatedNode)

describe.skipIf(oldNode === undefined)(`on Node ${outdatedNode}`, () => {
  it('R21: npm start says so in one line, brings a newer one into the clone and goes on with it', () => {
    const clone = mkdtempSync(join(folder, 'clone-'))
    cpSync(join(root, 'scripts'), join(clone, 'scripts'), { recursive: true })
    for (const name of readdirSync(root))
      if (!['.git', '.node', 'scripts', 'node_modules'].includes(name))
        symlinkSync(join(root, name), join(clone, name))
    // Its parts: a set-up that finds them out of date takes away what is there.
    mkdirSync(join(clone, 'node_modules'))
    for (const name of readdirSync(join(root, 'node_modules')))
      symlinkSync(join(root, 'node_modules', name), join(clone, 'node_modules', name))
    const start = () =>
      spawnSync(oldNode!, [join(clone, 'scripts/start.mjs'), '--help'], { cwd: clone, encoding: 'utf8' })
    const first = start()
    expect([first.status, first.stdout]).toEqual([0, expect.stringContaining('Usage: gantry demo')])
    expect(first.stderr).toMatch(
      /^\[set-up\] Node 20\.\S+ is too old: Gantry needs 22\.16\.0 or newer, best 24; bringing Node 24 into \.node\/ .*\n$/,
    )
    const second = start()
    expect(second.status).toBe(0)
    expect(second.stderr).toMatch(/^\[set-up\] Node 20.* going on with Node 24 in \.node\/\n$/)
  }, 120_000)

  it('every script that a person starts does so first', () => {
    for (const name of readdirSync(join(root, 'scripts')).filter((file) => file.endsWith('.mjs'))) {
      if (name === 'node-path.mjs') continue
      const [first] = readFileSync(join(root, 'scripts', name), 'utf8').match(/^import .*$/m) ?? []
      expect([name, first]).toEqual([name, "import './lib/right-node.mjs'"])
    }
  })

  it.each([[[]], [['check', '-c', 'nowhere.yaml']], [['--json', 'doctor']]])(
    'gantry %j is refused with the version it needs',
    (args) => {
      const { status, stdout, stderr } = spawnSync(oldNode!, [join(root, 'dist/cli/main.js'), ...args], {
        encoding: 'utf8',
      })
      expect([status, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/Node 20\.\S+ is too old: Gantry needs 22\.16\.0 or newer, best 24/)
      expect(stderr.trim().split('\n').length).toBe(args[0] === '--json' ? 1 : 2)
    },
  )
})

describe('counts of npm test', () => {
  const vitestReport = (files: unknown[]): string => {
    const path = join(folder, 'vitest.json')
    writeFileSync(path, JSON.stringify({ testResults: files }))
    return path
  }
  const file = (status: string, tests: string[]) => ({
    name: join(root, 'test/a.test.ts'),
    status,
    assertionResults: tests.map((test, index) => ({ status: test, fullName: `t${index}` })),
  })

  it('are those of the tests', () => {
    const path = vitestReport([
      file('passed', ['passed', 'passed', 'pending', 'todo']),
      file('failed', ['failed']),
    ])
    expect(countVitest(path, false)).toEqual({
      passed: 2,
      failed: 1,
      skipped: 2,
      skippedNames: ['test/a.test.ts: t2', 'test/a.test.ts: t3'],
    })
  })

  it('have a failure for a file that could not be loaded', () => {
    expect(countVitest(vitestReport([file('failed', [])]), false)).toMatchObject({ passed: 0, failed: 1 })
  })

  it('have a failure for an error outside of every test', () => {
    expect(countVitest(vitestReport([file('passed', ['passed'])]), false)).toMatchObject({
      passed: 1,
      failed: 1,
    })
  })

  it('have a failure when there is no report at all', () => {
    expect(countVitest(join(folder, 'none.json'), true)).toMatchObject({ passed: 0, failed: 1 })
  })

  it('include the training tests', () => {
    const path = join(folder, 'junit.xml')
    writeFileSync(
      path,
      '<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="1" tests="9" time="1">' +
        '<testcase classname="tests.a" name="b" time="0.1"><skipped type="pytest.skip"/></testcase></testsuite></testsuites>',
    )
    const counts = countPytest(path, false)
    expect(counts).toEqual({ passed: 5, failed: 3, skipped: 1, skippedNames: ['training tests.a: b'] })
    expect(countsLine(sum([counts, counts]))).toBe('10 passed, 6 failed, 2 skipped')
  })
})
