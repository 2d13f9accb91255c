import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TraceFiles } from '../../../src/runtime/tracing/trace-files.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

it('writes whole files for their owner alone, numbered after those that are there', async () => {
  const dir = join(tempDir(), 'traces')
  mkdirSync(dir)
  writeFileSync(join(dir, 'trace.json.7'), '[]')
  const files = new TraceFiles(dir, 1_000_000, silentLog())
  files.save('{"id":1},{"id":2}')
  files.save('{"id":3}')
  await files.written()
  expect(readdirSync(dir).sort()).toEqual(['trace.json.7', 'trace.json.8', 'trace.json.9'])
  expect(JSON.parse(readFileSync(join(dir, 'trace.json.8'), 'utf8'))).toEqual([{ id: 1 }, { id: 2 }])
  expect(statSync(join(dir, 'trace.json.8')).mode & 0o777).toBe(0o600)
})

it('removes its oldest files beyond the limit, and no others', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'notes.txt'), 'x'.repeat(10_000))
  const files = new TraceFiles(dir, 2_999, silentLog())
  for (let i = 0; i < 12; i++) files.save(JSON.stringify('x'.repeat(995)))
  await files.written()
  expect(readdirSync(dir).sort()).toEqual(['notes.txt', 'trace.json.10', 'trace.json.11'])
})

it('goes on without a folder that it can write to', async () => {
  const file = join(tempDir(), 'file')
  writeFileSync(file, '')
  const files = new TraceFiles(join(file, 'traces'), 1_000, silentLog())
  files.save('{}')
  await expect(files.written()).resolves.toBeUndefined()
})
