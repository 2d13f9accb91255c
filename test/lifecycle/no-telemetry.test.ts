import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const module = join(import.meta.dirname, '../../dist/lifecycle/no-telemetry.js')

it.each([
  [undefined, '1'],
  ['', '1'],
  ['1', '1'],
  ['0', '0'],
])('native code sees ORT_DISABLE_TELEMETRY %j as %j', (given, seen) => {
  // A child is given the environment that native code sees.
  const script = `await import(${JSON.stringify(module)})
    const { spawnSync } = await import('node:child_process')
    spawnSync('printenv', ['ORT_DISABLE_TELEMETRY'], { stdio: 'inherit' })`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: given },
    encoding: 'utf8',
  })
  expect(stdout.trim()).toBe(seen)
})
