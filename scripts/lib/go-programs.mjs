import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Where programs and packages for tests are kept between runs. */
export const testCache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'gantry-test')

/**
 * Builds a program of a Go module at its version, once.
 *
 * @param module - `path@version`, as `go install` takes it.
 * @returns its path, named after the version
 * @throws Error where Go is missing or cannot build it
 */
export function goProgram(module, say) {
  const path = goProgramPath(module)
  if (existsSync(path)) return path
  const building = `${dirname(path)}.building-${process.pid}`
  say(`building ${module} (go install), which takes minutes ...`)
  try {
    mkdirSync(building, { recursive: true })
    go(['install', '-trimpath', '-ldflags', '-s -w', module], { env: { ...process.env, GOBIN: building } })
    rmSync(dirname(path), { recursive: true, force: true })
    renameSync(building, dirname(path))
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return path
}

/** Where {@link goProgram} keeps it, built or not. */
export function goProgramPath(module) {
  const [path, version] = module.split('@')
  const name = path.split('/').at(-1)
  return join(testCache, `${name}-${version}`, name)
}

/**
 * The folder of a Go module at its version, as it was published.
 *
 * @returns {string}
 * @throws Error where it cannot be fetched
 */
export function goModule(module) {
  return JSON.parse(go(['mod', 'download', '-json', module])).Dir
}

/**
 * Runs Go outside any module.
 *
 * @returns what it printed
 * @throws Error with what Go says
 */
export function go(args, { cwd = testCache, env = process.env } = {}) {
  mkdirSync(cwd, { recursive: true })
  const { status, stdout, stderr, error } = spawnSync('go', args, {
    cwd,
    env: { ...env, GOFLAGS: '-mod=mod', GOWORK: 'off' },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  })
  if (status === 0) return stdout
  throw new Error(`go ${args.join(' ')} failed: ${stderr || stdout || error?.message}`, { cause: error })
}
