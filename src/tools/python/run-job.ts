import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { InternalError } from '../../errors.js'
import { withDeathSignal } from '../../lifecycle/death-signal.js'
import { systemLimitIn, SystemLimitError } from '../../lifecycle/system-limit.js'
import { pythonModules } from './python-environment.js'

/** A model that Python's side refuses: what and why, and what to do. */
export type PythonRefusal = Readonly<{ refused: string; hint: string }>

/** Exit status of a refusal. */
const refusedStatus = 3

/**
 * Runs a job of a module of `python/` to its end; it dies with us.
 *
 * @param job - written as JSON to `jobFile`.
 * @param say - told each line of its progress.
 * @returns what it printed, or the refusal.
 * @throws InternalError with the last line of what it complained of; SystemLimitError; AbortError after the signal
 */
export async function runJob<T extends object>(
  python: string,
  module: string,
  job: object,
  jobFile: string,
  {
    env,
    say,
    signal,
  }: Readonly<{ env: NodeJS.ProcessEnv; say: (line: string) => void; signal?: AbortSignal | undefined }>,
): Promise<T | PythonRefusal> {
  writeFileSync(jobFile, JSON.stringify(job))
  const [command, args] = withDeathSignal(python, ['-m', module, jobFile])
  const child = spawn(command, args, {
    env: {
      ...env,
      PYTHONPATH: pythonModules,
      PYTHONNOUSERSITE: '1',
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONUNBUFFERED: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  let printed = ''
  const complaints: string[] = []
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk))
  createInterface({ input: child.stderr }).on('line', (line) => {
    complaints.push(line)
    if (complaints.length > 200) complaints.shift()
    if (line.startsWith('gantry: ')) say(line.slice('gantry: '.length))
  })
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (status === 0 || status === refusedStatus) return JSON.parse(printed) as T | PythonRefusal
  const text = complaints.join('\n')
  const limit = systemLimitIn(text)
  if (limit !== undefined) throw new SystemLimitError('the transformed model cannot be kept', limit)
  throw new InternalError(
    `${module} ended with status ${status}: ${complaints.filter((line) => line.trim() !== '').at(-1) ?? ''}`,
  )
}
