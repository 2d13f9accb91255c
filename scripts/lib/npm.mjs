import { spawnSync } from 'node:child_process'

const quiet = ['--no-audit', '--no-fund', '--loglevel=error']

/** Runs npm by this Node, the one that started us where there is one. Returns whether it succeeded; its complaints go to stderr. */
export function npm(args, cwd) {
  return run(args, cwd, 'ignore').status === 0
}

/** What npm prints. Ends this program where npm fails, which says why. */
export function npmOutput(args, cwd) {
  const { status, stdout } = run(args, cwd, 'pipe')
  if (status !== 0) process.exit(1)
  return stdout
}

function run(args, cwd, stdout) {
  const path = process.env.npm_execpath
  const [command, first] = path?.endsWith('.js') ? [process.execPath, [path]] : ['npm', []]
  const options = { cwd, stdio: ['ignore', stdout, 2], encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 }
  return spawnSync(command, [...first, ...quiet, ...args], options)
}
