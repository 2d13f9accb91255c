import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Python with the packages that a peer needs, from PyPI at the first call, then kept. Undefined, after a line that says why, where there is
 * none.
 *
 * @param peer - the folder beside this file with its `requirements.txt`.
 */
export async function peerPython(peer: string): Promise<string | undefined> {
  const requirements = fileURLToPath(new URL(`./${peer}/requirements.txt`, import.meta.url))
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const folder = join(cache, 'gantry-test', `${peer}-${key}`)
  const python = join(folder, 'venv/bin/python')
  if (existsSync(join(folder, 'complete'))) return python
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const packages = readFileSync(requirements, 'utf8').trim().split('\n').join(', ')
  process.stderr.write(`installing ${packages} for Python (pip) ...\n`)
  try {
    await run('python3', ['-m', 'venv', join(folder, 'venv')])
    await run(python, ['-m', 'pip', 'install', '--quiet', '-r', requirements])
  } catch (error) {
    process.stderr.write(`skipped: no Python with ${packages}: ${String(error)}\n`)
    return undefined
  }
  writeFileSync(join(folder, 'complete'), '')
  return python
}
