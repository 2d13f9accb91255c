import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { stringify } from 'yaml'

const root = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Runs a command of the built command line to its end, on a pipeline file that is written into `dir`. Never a stack trace on stderr.
 *
 * @param pipeline - laid over free ports, the models of the repository and a store in `dir`.
 */
export function runOnPipeline(
  dir: string,
  pipeline: Record<string, unknown>,
  [command, ...flags]: string[],
  env: NodeJS.ProcessEnv = {},
) {
  const file = join(dir, 'pipeline.yaml')
  const whole = {
    apiVersion: 'gantry/v1',
    server: { httpPort: 0, metricsPort: 0, grpcPort: 0 },
    models: { repository: join(root, 'models') },
    store: { path: join(dir, 'data') },
    ...pipeline,
  }
  writeFileSync(file, stringify(whole))
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'dist/cli/main.js'), command ?? '', '-c', file, ...flags],
    { encoding: 'utf8', timeout: 60_000, env: { ...process.env, ...env } },
  )
  expect(stderr).not.toMatch(/\n\s+at /)
  return { file, status, stdout, stderr }
}
