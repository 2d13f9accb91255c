import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Runs a command in our place: it gets our terminal and our signals, and we end as it ends. Never returns.
 *
 * A terminal sends Ctrl-C to both of us; a supervisor tells only this process, so SIGTERM is passed on.
 */
export function runToItsEnd(command, args, env = process.env) {
  const child = spawn(command, args, { stdio: 'inherit', env })
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  return new Promise((_, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? 'SIGKILL']))
  })
}
