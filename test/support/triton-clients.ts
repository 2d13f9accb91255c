import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { tritonClients as installed } from '../../scripts/lib/triton-clients.mjs'

/** Paths of the clients that the set-up for tests installs. */
export type TritonClients = Readonly<{ python: string; perfAnalyzer: string }>

/** `undefined` where they are not installed; in CI they always are. */
export const tritonClients = installed() as TritonClients | undefined

/** Runs a program; stdout, or an error with all it said. */
export async function runClient(
  command: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, args, {
      timeout: timeoutMs,
      maxBuffer: 64 * 1024 ** 2,
    })
    return stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}
