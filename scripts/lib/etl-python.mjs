import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * The Python of examples/etl, kept between runs: one folder for each set of requirements, some 900 MB. `GANTRY_ETL_PYTHON` names another.
 *
 * @throws Error where pip cannot install them
 */
export function etlPython(say) {
  const given = process.env.GANTRY_ETL_PYTHON
  if (given) return given
  const requirements = join(root, 'examples/etl/requirements.txt')
  const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const folder = join(cache, 'gantry-test', `etl-${key}`)
  const python = join(folder, 'venv/bin/python')
  if (existsSync(join(folder, 'complete'))) return python
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  say('installing Apache Beam and PySpark (pip), which takes minutes ...')
  run('python3', ['-m', 'venv', join(folder, 'venv')])
  run(python, ['-m', 'pip', 'install', '--quiet', '-r', requirements])
  writeFileSync(join(folder, 'complete'), '')
  return python
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`, { cause: error })
}
