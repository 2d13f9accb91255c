import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

it('ends with a clear error, and leaves nothing behind, where the browser has no WebGL', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sim-browser-'))
  try {
    const browser = join(folder, 'chromium')
    await writeFile(
      browser,
      `#!/bin/sh\necho $$ > ${folder}/pid\nexec ${process.env['SIM_CHROMIUM'] ?? '/usr/bin/chromium'} --disable-3d-apis "$@"\n`,
    )
    await chmod(browser, 0o755)
    const { code, stderr } = await simulator(
      ['render', 'zone-entry', '--out', join(folder, 'a.mp4'), '--frames', '0..1'],
      { SIM_CHROMIUM: browser },
    )
    expect(code).toBe(1)
    expect(stderr).toContain('WebGL')
    expect(stderr).toContain('Rendering needs Chromium')
    const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 120_000)

it('refuses frames that the scenario does not have', async () => {
  const { code, stderr } = await simulator([
    'render',
    'zone-entry',
    '--out',
    join(tmpdir(), 'never.mp4'),
    '--frames',
    '990..5000',
  ])
  expect(code).toBe(1)
  expect(stderr).toContain('zone-entry has frames 0..1000')
}, 60_000)

/** The simulator as its user starts it; ended, with all it started, when this resolves. */
function simulator(
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', 'tsx', 'sim/cli.ts', ...words],
      { env: { ...process.env, ...env }, timeout: 100_000 },
      (error, _, stderr) => resolve({ code: error === null ? 0 : Number(error.code ?? -1), stderr }),
    )
  })
}
