import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli/program.js'
import { loadPipeline } from '../../src/config/load.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .stdout.trim()
  .split('\n')
const readme = read('README.md')

describe('documentation', () => {
  it.each(pages)('%s leads only to what exists', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)\s#]+)[^)]*\)/g)].map(
      ([, link = '']) => link,
    )
    expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([])
  })

  // The changelog tells of what was.
  it.each(pages.filter((page) => page !== 'CHANGELOG.md'))('%s names files that exist', (page) => {
    const named = [...read(page).matchAll(/(Create )?`((?:src|test|scripts|deploy|schemas)\/[\w./-]+)`/g)]
    const examples = named.filter(([, create]) => create !== undefined).map(([, , path]) => path)
    const absent = named
      .map(([, , path = '']) => path)
      .filter((path) => !examples.includes(path) && !/^\w+\/a\/b\./.test(path))
      .filter((path) => !existsSync(join(root, path)))
    expect(absent).toEqual([])
  })

  it('names exactly the commands there are', async () => {
    const terminal = fakeTerminal()
    await run(['--help'], terminal)
    const commands = [...terminal.stdout().matchAll(/^ {2}([a-z]+)(?: [[<]|$| {2,})/gm)].map(
      ([, name]) => name,
    )
    const documented = [...readme.matchAll(/^\| `gantry ([a-z]+)/gm)].map(([, name]) => name)
    expect(documented).toEqual(commands.filter((name) => name !== 'help'))
  })

  it('names only paths that the API has', () => {
    const { paths } = JSON.parse(read('schemas/openapi.json')) as { paths: Record<string, unknown> }
    const section = readme.slice(readme.indexOf('## HTTP'), readme.indexOf('## Operations'))
    const named = [...section.matchAll(/`(\/[a-z0-9/{}.]*)(?:\?[^`]*)?`/g)].map(([, path = '']) => path)
    // What is below /v2 is the protocol of KServe.
    const known = new Set(['/', '/v2', ...Object.keys(paths)])
    expect(named.filter((path) => !known.has(path))).toEqual([])
    expect(named.length).toBeGreaterThan(10)
  })

  it('shows a pipeline file that is accepted', () => {
    const yaml = /```yaml\n(# plant\.yaml\n.*?)```/s.exec(readme)?.[1] ?? ''
    const path = join(tempDir(), 'plant.yaml')
    writeFileSync(path, yaml)
    expect(loadPipeline(path, { env: { DOCK_PASSWORD: 'x' } }).config.cameras).toHaveLength(1)
  })

  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/npm run ([a-z0-9:]+)/g)].map(([, name = '']) => name),
    )
    expect(named.filter((name) => !(name in scripts))).toEqual([])
  })

  it.each(['docs/benchmarks.md', 'docs/benchmarks-history.md'])('%s names benchmarks that exist', (page) => {
    const named = [...read(page).matchAll(/test\/bench\/[\w.-]+/g)].map(([file]) => file)
    expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([])
    expect(named.length).toBeGreaterThan(0)
  })

  it('tells the figures of every benchmark', () => {
    const figures = read('docs/benchmarks.md') + read('docs/benchmarks-history.md')
    const benches = readdirSync(join(root, 'test/bench')).filter((name) => name.endsWith('.bench.ts'))
    expect(benches.filter((name) => !figures.includes(`test/bench/${name}`))).toEqual([])
  })

  it.each(pages)('%s has cells that can be read at a glance', (page) => {
    const most = page === 'docs/benchmarks.md' ? 160 : 300
    const cells = read(page)
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .flatMap((line) => line.split(/(?<!\\)\|/))
    expect(cells.filter((cell) => cell.trim().length > most)).toEqual([])
  })
})
