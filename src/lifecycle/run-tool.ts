import { spawn } from 'node:child_process'
import { withDeathSignal } from './death-signal.js'
import { systemLimitIn, SystemLimitError } from './system-limit.js'

/** How programs that fetch and unpack are run. */
export type ToolOptions = Readonly<{
  env: NodeJS.ProcessEnv
  /** Otherwise what they print of their progress is on stderr. */
  quiet: boolean
  cwd: string
  /** Ends the program. */
  signal?: AbortSignal | undefined
}>

/** What the system refuses of a program that writes files. Of the network it says the same of an address that is not reached. */
const ofFiles = ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EIO']

/**
 * Runs a program to its end; it dies with us.
 *
 * @param what - it does, for the error: `nvidia-cublas cannot be downloaded`.
 * @returns what it complained of, where it failed.
 * @throws SystemLimitError if the disk was full, or may not be written to; AbortError if the signal ended it
 */
export async function runTool(
  program: string,
  args: readonly string[],
  what: string,
  { env, quiet, cwd, signal }: ToolOptions,
): Promise<string | undefined> {
  const complaints = await new Promise<string | undefined>((resolve, reject) => {
    const child = spawn(...withDeathSignal(program, args), {
      env,
      cwd,
      signal,
      stdio: ['ignore', quiet ? 'ignore' : 2, 'pipe'],
    })
    let text = ''
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    child.once('error', reject)
    child.once('close', (code) => resolve(code === 0 ? undefined : text))
  })
  const limit = systemLimitIn(complaints ?? '')
  if (limit !== undefined && ofFiles.includes(limit.code)) throw new SystemLimitError(what, limit)
  return complaints
}
