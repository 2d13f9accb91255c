import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { stringify } from 'yaml'
import { checkFolders } from '../../../src/cli/checks/folders-check.js'
import { loadPipeline } from '../../../src/config/load.js'
import { tempDir } from '../../support/temp-dir.js'

afterEach(() => vi.unstubAllEnvs())

/** What is found, by subject: the state and its words. */
async function findings(dir: string, pipeline: Record<string, unknown> = {}) {
  const file = join(dir, 'pipeline.yaml')
  writeFileSync(file, stringify({ apiVersion: 'gantry/v1', ...pipeline }))
  const found = await checkFolders(loadPipeline(file, { env: {} }).config)
  return Object.fromEntries(found.map(({ subject, state, detail, fix }) => [subject, { state, detail, fix }]))
}

it('R82: finds nothing wrong with usual folders, and makes none', async () => {
  const dir = tempDir()
  expect(await findings(dir)).toMatchObject({ 'temporary folder': { state: 'ok' }, store: { state: 'ok' } })
  expect(readdirSync(dir)).toEqual(['pipeline.yaml'])
})

it('R82: finds a temporary folder that is missing, by TMPDIR', async () => {
  const dir = tempDir()
  vi.stubEnv('TMPDIR', join(dir, 'none'))
  const { 'temporary folder': temporary } = await findings(dir)
  expect(temporary?.state).toBe('failed')
  expect(temporary?.detail).toContain(`${join(dir, 'none')} (TMPDIR) cannot be used`)
  expect(temporary?.fix).toContain('TMPDIR')
})

it('R82: finds folders that cannot be written, by their settings', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'file'), '')
  const { store, traces } = await findings(dir, {
    store: { path: './none/../file/x' },
    modelServer: { trace: { dir: './file' } },
  })
  // What a service saved below a file it cannot read either.
  expect(store).toMatchObject({ state: 'failed' })
  expect(store?.detail).toContain(join(dir, 'file/x'))
  expect(traces).toMatchObject({
    state: 'warning',
    fix: expect.stringContaining('modelServer.trace.dir') as string,
  })
})

it('R82: finds saved cameras that a service could not read', async () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'data'))
  writeFileSync(join(dir, 'data/cameras.json'), '{')
  const { store } = await findings(dir, { store: { path: './data' } })
  expect(store?.state).toBe('failed')
  expect(store?.detail).toContain('cameras.json')
})
