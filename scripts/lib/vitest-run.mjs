import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { root } from './root.mjs'
import { countVitest } from './test-counts.mjs'

/**
 * Runs vitest by that Node, which is also the first on the PATH of what the tests start.
 *
 * @param args - of `vitest run`.
 * @returns the counts.
 */
export function runVitest(args, node = process.execPath) {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-test-counts-'))
  const report = join(folder, 'vitest.json')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const { status } = spawnSync(
    node,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...args],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` },
    },
  )
  const counts = countVitest(report, status === 0)
  rmSync(folder, { recursive: true, force: true })
  return counts
}
