import { spawnSync } from 'node:child_process'

const quiet = ['--no-audit', '--no-fund', '--loglevel=error']

/** Runs npm by this Node, the one that started us where there is one. Returns whether it succeeded; its complaints go to stderr. */
export function npm(args, cwd) {
  const path = process.env.npm_execpath
  const [command, first] = path?.endsWith('.js') ? [process.execPath, [path]] : ['npm', []]
  return (
    spawnSync(command, [...first, ...quiet, ...args], { cwd, stdio: ['ignore', 'ignore', 2] }).status === 0
  )
}
