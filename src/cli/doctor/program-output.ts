import { execFile } from 'node:child_process'

const limitMs = 10_000

/** What a program prints, stdout and stderr together; undefined when it is not there or fails. */
export async function programOutput(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const options = { timeout: limitMs, maxBuffer: 8 * 1024 * 1024, env }
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => resolve(error ? undefined : stdout + stderr))
  })
}
