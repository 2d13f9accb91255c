import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testNode } from '../../scripts/lib/other-node.mjs'
import { outdatedNode } from '../../scripts/lib/test-tools.mjs'
import { pythonClients } from '../support/python-clients.js'
import { RedService } from '../support/red-service.js'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const address = 'http://127.0.0.1:8000'

/** The programs of the page, in a language. */
function programs(language: 'ts' | 'python'): readonly string[] {
  const page = read('docs/clients.md')
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(
    ([, text = '']) => text,
  )
}

/** @returns its stdout. @throws with all it said. */
function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}:\n${stdout}\n${stderr}`)
  return stdout
}

describe.skipIf(pythonClients === undefined)('the packages of clients', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-clients-'))
  const [node, python] = [join(folder, 'node'), join(folder, 'python')]
  const interpreter = join(python, 'venv/bin/python')
  let red: RedService
  let packed: readonly string[]

  beforeAll(async () => {
    for (const place of [node, python]) mkdirSync(place)
    const script = join(root, 'scripts/pack-clients.mjs')
    packed = run(process.execPath, [script, '--out', folder, '--python', pythonClients ?? ''], root)
      .trim()
      .split('\n')
    red = await RedService.start()
  }, 300_000)
  afterAll(async () => {
    await red?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs a program until it has said something that fits. */
  async function says(wanted: RegExp, command: string, args: readonly string[], cwd: string): Promise<void> {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const closed = once(child, 'close')
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    try {
      await until('what it prints', () => wanted.test(said) || child.exitCode !== null, 30_000)
    } finally {
      child.kill('SIGKILL')
      await closed
    }
    expect(said).toMatch(wanted)
  }

  it('have the version of the service', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    expect(packed.map((path) => path.slice(folder.length + 1))).toEqual([
      `gantry-client-${version}.tgz`,
      `gantry_client-${version}-py3-none-any.whl`,
    ])
    expect(read('docs/clients.md')).toContain(`gantry_client-${version}-py3-none-any.whl`)
  })

  it('R123: the tarball installs into an empty folder, and its programs compile strictly and run', async () => {
    // What a registry would bring.
    const [ws = ''] = run(
      'npm',
      ['pack', '--silent', '--pack-destination', folder, join(root, 'node_modules/ws')],
      folder,
    )
      .trim()
      .split('\n')
    writeFileSync(join(node, 'package.json'), '{ "type": "module", "private": true }')
    run('npm', ['install', '--offline', '--no-audit', '--no-fund', packed[0] ?? '', join(folder, ws)], node)
    const { dependencies } = JSON.parse(
      readFileSync(join(node, 'node_modules/@gantry/client/package.json'), 'utf8'),
    ) as { dependencies: object }
    expect(Object.keys(dependencies)).toEqual(['ws'])

    for (const [index, text] of programs('ts').entries())
      writeFileSync(join(node, `program-${index}.ts`), text.replaceAll(address, red.service.url))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const strict = [
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      '--target',
      'es2022',
    ]
    const files = readdirSync(node).filter((name) => name.endsWith('.ts'))
    const nodeTypes = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
    const compiled = (more: readonly string[]) => run(process.execPath, [tsc, ...strict, ...more], node)
    compiled(['--module', 'nodenext', '--outDir', 'out', ...nodeTypes, ...files])
    compiled(['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', ...nodeTypes, ...files])
    // The types stand alone: neither those of Node nor those of a browser are needed.
    writeFileSync(join(node, 'alone.ts'), `export { connect, GantryApi } from '@gantry/client'\n`)
    const bare = ['--lib', 'es2022', '--noEmit', 'alone.ts']
    compiled(['--module', 'nodenext', ...bare])
    compiled(['--module', 'esnext', '--moduleResolution', 'bundler', ...bare])

    expect(files.length).toBe(4)
    const runs = /^yard \S+$|yard \[|yard \d+\n/m
    for (const file of files) await says(runs, process.execPath, [`out/${file.replace('.ts', '.js')}`], node)
    const oldest = testNode(outdatedNode)
    if (oldest !== undefined) await says(runs, oldest, ['out/program-0.js'], node)
  }, 240_000)

  it('R123: the tarball is bundled for a browser without ws, and runs there', async () => {
    writeFileSync(join(node, 'browser.js'), programs('ts')[0]?.replaceAll(address, red.service.url) ?? '')
    const vite = join(root, 'node_modules/vite/bin/vite.js')
    writeFileSync(
      join(node, 'vite.config.js'),
      `export default { build: { lib: { entry: 'browser.js', formats: ['es'], fileName: 'page' }, outDir: 'bundle', target: 'es2022' } }`,
    )
    run(process.execPath, [vite, 'build', '--logLevel', 'warn'], node)
    const [bundle = '', ...others] = readdirSync(join(node, 'bundle'))
    expect(others).toEqual([])
    expect(readFileSync(join(node, 'bundle', bundle), 'utf8')).not.toMatch(/permessage-deflate|node:/)
    await says(/yard \[/, process.execPath, [join('bundle', bundle)], node)
  }, 120_000)

  it('R123: the wheel installs into a new environment, and its programs are typed strictly and run', async () => {
    run(pythonClients ?? '', ['-m', 'venv', join(python, 'venv')], python)
    run(interpreter, ['-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', packed[1] ?? ''], python)
    // What PyPI would bring.
    const place = `import sysconfig; print(sysconfig.get_path('purelib'))`
    const packages = run(pythonClients ?? '', ['-c', place], python)
    writeFileSync(join(run(interpreter, ['-c', place], python).trim(), 'others.pth'), packages)
    expect(run(interpreter, ['-m', 'pip', 'check'], python)).toContain('No broken requirements')

    const texts = programs('python')
    for (const [index, text] of texts.entries()) {
      writeFileSync(join(python, `program_${index}.py`), text.replaceAll(address, red.service.url))
      const mypy = ['-m', 'mypy', '--strict', '--python-executable', interpreter]
      run(pythonClients ?? '', [...mypy, `program_${index}.py`], python)
    }
    expect(texts.length).toBe(3)
    for (const index of texts.keys())
      await says(/^yard (?:\[|\d|live)/m, interpreter, [`program_${index}.py`], python)
  }, 240_000)
})
