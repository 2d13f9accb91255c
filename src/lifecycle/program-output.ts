import { execFile } from 'node:child_process'
import { withDeathSignal } from './death-signal.js'
import { systemLimit, SystemLimitError } from './system-limit.js'

const limitMs = 10_000

/**
 * What a program prints, stdout and stderr together; undefined when it is not there or fails.
 *
 * @throws SystemLimitError where nothing can be started: that says nothing of the program.
 */
export async function programOutput(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const options = { timeout: limitMs, maxBuffer: 8 * 1024 * 1024, env }
  return new Promise((resolve, reject) => {
    execFile(...withDeathSignal(program, args), options, (error, stdout, stderr) => {
      const limit = systemLimit(error)
      const isItsOwn = limit === undefined || limit.code === 'EACCES' || limit.code === 'EPERM'
      if (!isItsOwn) reject(new SystemLimitError(`${program} cannot be started`, limit, error))
      else resolve(error ? undefined : stdout + stderr)
    })
  })
}
