import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * A Python with the packages of a file of requirements, kept between runs: one folder for each set of them.
 *
 * @param name - Begins the folder's name.
 * @param what - Told before they are installed.
 * @returns Path of the interpreter.
 * @throws Error where pip cannot install them
 */
export function keptPython(name, requirements, what, say) {
  const kept = keptPythonPath(name, requirements)
  if (kept !== undefined) return kept
  const folder = folderOf(name, requirements)
  const python = join(folder, 'venv/bin/python')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  say(`installing ${what} (pip), which takes minutes ...`)
  run('python3', ['-m', 'venv', join(folder, 'venv')])
  run(python, ['-m', 'pip', 'install', '--quiet', '-r', requirements])
  writeFileSync(join(folder, 'complete'), '')
  return python
}

/** @returns Path of the interpreter; undefined where it is not installed. */
export function keptPythonPath(name, requirements) {
  const folder = folderOf(name, requirements)
  return existsSync(join(folder, 'complete')) ? join(folder, 'venv/bin/python') : undefined
}

function folderOf(name, requirements) {
  const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(cache, 'gantry-test', `${name}-${key}`)
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`, { cause: error })
}
