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
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { CameraStore } from '../../src/cameras/camera-store.js'
import { loadPipeline } from '../../src/config/load.js'
import { freely, GantryProcess } from '../support/gantry-process.js'
import { TestAuthority } from '../support/test-authority.js'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const fixtures = join(import.meta.dirname, '../fixtures/settings')
const releases = readdirSync(fixtures, { withFileTypes: true }).filter((entry) => entry.isDirectory())
const files = releases.flatMap(({ name }) =>
  readdirSync(join(fixtures, name))
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => [name, file] as const),
)
/** Their models lie in folders of other machines. */
const elsewhere = new Set(['compose.yaml', 'model-server.yaml'])
/** These say only what a schema has to take: their machines are not here. */
const forms = new Set(['every-setting.yaml', 'other-forms.yaml'])

/** A folder in which the files find what they name. */
let place: string
let authority: TestAuthority

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'gantry-test-'))
  authority = new TestAuthority()
  mkdirSync(join(place, 'pem'))
  cpSync(authority.ca, join(place, 'pem/ca.pem'))
  for (const name of ['server', 'client']) {
    const { cert, key } = authority.issue(name)
    cpSync(cert, join(place, `pem/${name}.pem`))
    cpSync(key, join(place, `pem/${name}.key`))
  }
  writeFileSync(join(place, 'pem/token'), 'a-token-of-this-test\n')
  for (const folder of ['models', 'examples', 'pipelines'])
    symlinkSync(join(root, folder), join(place, folder))
  mkdirSync(join(place, 'below'))
})

afterAll(() => {
  authority.remove()
  rmSync(place, { recursive: true, force: true })
})

const env = {
  DOCK_PASSWORD: 'secret-of-dock',
  GANTRY__SERVER__TOKEN: 'a-token-of-this-test',
}

/** Copies the file to where its paths lead somewhere: those of `pipelines` start one folder below. */
function placed(release: string, file: string): string {
  const from = join(fixtures, release, file)
  const isBelow = /\.\.\/(models|data)/.test(readFileSync(from, 'utf8'))
  const to = join(place, isBelow ? 'below' : '.', `${release}-${file}`)
  cpSync(from, to)
  return to
}

/** Each value of a file by its path. */
function leaves(value: unknown, path: readonly string[] = []): readonly [string, unknown][] {
  if (typeof value !== 'object' || value === null) return [[path.join('.'), value]]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]))
}

/** What is made absolute, filled in or read as another setting, is so on purpose. */
function isChanged(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    /^(\$\{|pem\/|\.\.?\/|models|more-models|traces|clips|state|examples\/)/.test(value)
  )
}

describe('settings of an earlier release', () => {
  it('are there', () => {
    expect(files.length).toBeGreaterThan(8)
  })

  it.each(files)('%s/%s means what it meant', (release, file) => {
    const path = placed(release, file)
    const { config } = loadPipeline(path, {
      env: file === 'compose.yaml' ? env : { DOCK_PASSWORD: 'x' },
      toServe: true,
    })
    const inForce = new Map(leaves(config))
    const written = leaves(parse(readFileSync(path, 'utf8'))).filter(([, value]) => !isChanged(value))
    expect(written.filter(([key, value]) => inForce.get(key) !== value)).toEqual([])
  })

  it.each(files.filter(([, file]) => !forms.has(file)))(
    '%s/%s starts',
    { timeout: 120_000 },
    async (release, file) => {
      const store = tempDir()
      cpSync(join(fixtures, release, 'cameras.json'), join(store, 'cameras.json'))
      const models = elsewhere.has(file) ? ['--set', `models.repository=${place}/models`] : []
      const here = ['--host', '127.0.0.1', ...models]
      const process = new GantryProcess(['serve', '-c', placed(release, file), ...freely(store), ...here], {
        env,
      })
      onTestFinished(() => process.kill())
      const url = await process.httpUrl().catch((error: unknown) => {
        throw new Error(process.stderr, { cause: error })
      })
      const answer = await fetch(`${url}/healthz`)
      expect(answer.status).toBe(200)
    },
  )

  it.each(releases.map(({ name }) => name))('%s: cameras that it kept are read', async (release) => {
    const store = tempDir()
    const kept = join(fixtures, release, 'cameras.json')
    cpSync(kept, join(store, 'cameras.json'))
    const cameras = await new CameraStore(store).load()
    const { cameras: written } = JSON.parse(readFileSync(kept, 'utf8')) as { cameras: object[] }
    expect(cameras).toMatchObject(written)
  })
})
