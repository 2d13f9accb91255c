import { spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { InstalledPackage } from '../support/installed-package.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')

describe('the package', () => {
  let installed: InstalledPackage
  beforeAll(async () => {
    installed = await InstalledPackage.create()
  }, 300_000)
  afterAll(() => installed?.remove())

  /** Every file below the folder that npm made. */
  const files = () =>
    readdirSync(installed.place, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
  const within = (path: string) => path.slice(installed.place.length + 1)

  it('R92: holds one platform, and nothing of the tests or the build', () => {
    const paths = files().map(within)
    const binaries = paths.filter((path) => path.endsWith('.node'))
    const others = binaries.filter((path) => !path.includes('linux') || !path.includes(process.arch))
    expect([others, binaries.length > 4]).toEqual([[], true])
    expect(paths.filter((path) => /^(?:test|src|scripts|web|sim|training)\/|\.map$/.test(path))).toEqual([])
    for (const needed of ['dist/sbom.cdx.json', 'dist/licences.txt', 'dist/web/index.html', 'LICENSE'])
      expect(paths).toContain(needed)
  })

  it('takes at most 200 MB, and says what is inside and which commit it is of', () => {
    const bytes = files().reduce((total, path) => total + lstatSync(path).blocks * 512, 0)
    expect(bytes).toBeLessThan(200e6)
    const manifest = JSON.parse(readFileSync(join(installed.place, 'package.json'), 'utf8')) as object
    expect(manifest).toMatchObject({
      os: ['linux'],
      cpu: [process.arch],
      libc: ['glibc'],
      gitHead: expect.stringMatching(/^[0-9a-f]{40}$/) as string,
    })
    const sbom = readFileSync(join(installed.place, 'dist/sbom.cdx.json'), 'utf8')
    const { components } = JSON.parse(sbom) as { components: { name: string; version: string }[] }
    const names = files().map((path) => /.*\/node_modules\/(.+)\/package\.json$/.exec(path)?.[1])
    const inside = new Set(names)
    expect(components.filter(({ name }) => !inside.has(name))).toEqual([])
    expect(components.length).toBeGreaterThan(100)
  })

  it('S33: has nothing that runs when it is installed', () => {
    const running = files()
      .filter((path) => /\/node_modules\/(?:@[^/]+\/)?[^/]+\/(?:package\.json|binding\.gyp)$/.test(path))
      .filter((path) => {
        const { scripts = {} } = path.endsWith('.gyp')
          ? { scripts: { install: '' } }
          : (JSON.parse(readFileSync(path, 'utf8')) as { scripts?: Record<string, string> })
        return ['preinstall', 'install', 'postinstall', 'prepare'].some((name) => name in scripts)
      })
    expect(running.map(within)).toEqual([])
  })

  it('R93: runs without a registry, by a user who cannot write at home, and leaves its own folder alone', async () => {
    const before = files()
    expect(await installed.gantry('--version')).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^\d+\.\d+\.\d+(?:\+dirty)?\n$/) as string,
    })
    const inspected = await installed.gantry('models', 'inspect', 'ppe')
    expect([inspected.code, inspected.output]).toEqual([0, expect.stringContaining('runs here')])

    const pipeline = join(installed.data, 'pipeline.yaml')
    const server = { httpPort: 0, grpcPort: 0, metricsPort: 0 }
    const models = { repository: join(installed.place, 'models') }
    writeFileSync(
      pipeline,
      stringify({
        apiVersion: 'gantry/v1',
        name: 'a',
        ensemble: 'ppe',
        engines: 0,
        models,
        server,
        store: { path: './data' },
      }),
    )
    const checked = await installed.gantry('check', '-c', pipeline)
    expect([checked.code, checked.output]).toEqual([0, expect.stringContaining('5 of 5 can be loaded')])
    await whileRunning(installed.start('serve', '-c', pipeline, '--json'), async (url) => {
      await until('the model', async () => (await fetch(`${url}/v2/models/ppe/ready`)).ok, 60_000)
      const image = {
        name: 'image',
        datatype: 'UINT8',
        shape: [64, 64, 3],
        data: Array(64 * 64 * 3).fill(114),
      }
      const answer = await fetch(`${url}/v2/models/ppe/infer`, {
        method: 'POST',
        body: JSON.stringify({ inputs: [image] }),
        headers: { 'content-type': 'application/json' },
      })
      expect([answer.status, await answer.json()]).toMatchObject([200, { model_name: 'ppe' }])
    })
    expect(files()).toEqual(before)
  }, 120_000)

  it('R93: shows the demo, and keeps what it keeps in the folder of the user', async () => {
    const before = files()
    const free = ['--http-port', '0', '--metrics-port', '0', '--set', 'server.grpcPort=0']
    await whileRunning(installed.start('demo', '--cameras', '1', ...free, '--json'), async (url) => {
      expect(await (await fetch(url)).text()).toContain('<title>')
      const total = async () =>
        ((await (await fetch(`${url}/api/v1/detections`)).json()) as { items: [] }).items.length
      await until('a result', async () => (await total()) > 0, 60_000)
      const camera = { id: 'kept', url: 'push:', persist: true }
      const added = await fetch(`${url}/api/v1/cameras`, {
        method: 'POST',
        body: JSON.stringify(camera),
        headers: { 'content-type': 'application/json' },
      })
      expect(added.status).toBe(201)
    })
    expect(readdirSync(join(installed.data, 'gantry/demo'))).toContain('cameras.json')
    expect(files()).toEqual(before)
  }, 120_000)

  /** A project that uses the package, with what tsc says of its files. */
  function compile(sources: Readonly<Record<string, string>>, options: readonly string[]): string {
    const folder = tempDir()
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(installed.place, join(folder, 'node_modules/gantry'))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [name, text] of Object.entries(sources)) writeFileSync(join(folder, name), text)
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const args = ['--noEmit', '--strict', '--target', 'es2022', ...options, ...Object.keys(sources)]
    return spawnSync(process.execPath, [tsc, ...args], { cwd: folder, encoding: 'utf8' }).stdout
  }

  const typescript = `import type { CreateJsModel } from 'gantry/backend'
    const create: CreateJsModel = ({ parameters }) => ({
      execute: ({ inputs }) => ({ y: { shape: inputs['x']?.shape ?? [], data: new Float32Array(Number(parameters['n'])) } }),
    })
    export default create
    // @ts-expect-error A model has to execute.
    export const wrong: CreateJsModel = () => ({})`
  const javascript = `/** @type {import('gantry/backend').CreateJsModel} */
    export default () => ({ execute: ({ inputs }) => inputs })
    // @ts-expect-error A model has to execute.
    /** @type {import('gantry/backend').CreateJsModel} */ export const wrong = () => ({})`

  it.each([
    ['TypeScript', 'nodenext', { 'model.ts': typescript }],
    ['TypeScript that is bundled', 'bundler', { 'model.ts': typescript }],
    ['JavaScript', 'nodenext', { 'model.js': javascript }],
  ])('gives models in %s their types', (_, resolution, sources) => {
    const module = resolution === 'bundler' ? 'esnext' : resolution
    const options = ['--module', module, '--moduleResolution', resolution, '--allowJs', '--checkJs']
    expect(compile(sources, options)).toBe('')
    const otherwise = Object.fromEntries(
      Object.entries(sources).map(([name, text]) => [name, text.replace('// @ts-expect-error', '//')]),
    )
    expect(compile(otherwise, options)).toContain('error TS2322')
  })

  it('can be imported for its types by who forgets that they are types, and gives its schemas', () => {
    const folder = tempDir()
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(installed.place, join(folder, 'node_modules/gantry'))
    const code = `await import('gantry/backend')
      const { default: schema } = await import('gantry/schemas/pipeline.schema.json', { with: { type: 'json' } })
      console.log(schema.type)`
    const file = join(folder, 'a.mjs')
    writeFileSync(file, code)
    const { stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['object\n', ''])
  })
})

/** @param use - is given the URL that a service tells; then it is asked to end, which it does with 0. */
async function whileRunning(child: ChildProcess, use: (url: string) => Promise<void>): Promise<void> {
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const closed = once(child, 'close')
  try {
    await until('the line that tells the URL', () => stdout.includes('\n'), 60_000)
    await use((JSON.parse(stdout) as { httpUrl: string }).httpUrl)
  } catch (error) {
    throw new Error(stderr, { cause: error })
  } finally {
    child.kill('SIGTERM')
  }
  expect(await closed).toEqual([0, null])
}
