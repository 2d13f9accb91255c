import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const entry = join(import.meta.dirname, '../../../dist/backends/onnxruntime/provider-probe.js')

it.each([
  ['cpu', 0, ''],
  ['cuda', 1, expect.stringMatching(/^\S.*\n$/)],
])('a look at %s ends with %i and the reason', (provider, status, reason) => {
  const ended = spawnSync(process.execPath, [entry, provider, '0'], { encoding: 'utf8' })
  expect([ended.status, ended.stdout]).toEqual([status, reason])
})
