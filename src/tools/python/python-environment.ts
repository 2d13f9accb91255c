import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { isAlive } from '../../lifecycle/alive.js'
import { installation } from '../../lifecycle/installation.js'
import { programOutput } from '../../lifecycle/program-output.js'
import { runTool } from '../../lifecycle/run-tool.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { pipFailure } from './pip.js'
import { PythonError } from './python-error.js'

/** Python's own modules of this project, and what they need. */
export const pythonModules = join(installation, 'python')
const requirements = join(pythonModules, 'requirements.txt')

/** Versions of Python for which all that is required is to be had. */
const oldest = 11
const newest = 13
const candidates = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python']

export type PythonRequest = Readonly<{
  env: NodeJS.ProcessEnv
  /** A Python that has the packages; without it, one of an environment of our own. */
  python?: string | undefined
  quiet: boolean
  say: (line: string) => void
  signal?: AbortSignal | undefined
}>

/** Where the environment is, or will be: a folder of the user's cache, of one list of requirements. */
export function environmentFolder(env: NodeJS.ProcessEnv): string {
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'gantry', `python-${digest}`)
}

/** The Python of the environment, where it has been made. */
export function knownPython({ env, python }: Pick<PythonRequest, 'env' | 'python'>): string | undefined {
  if (python !== undefined) return python
  const own = pythonIn(environmentFolder(env))
  return existsSync(own) ? own : undefined
}

/**
 * A Python with the pinned packages of `python/requirements.txt`. On first use it makes an environment of its own, which appears when it is
 * complete.
 *
 * @returns its path.
 * @throws PythonError if there is no Python of a fitting version, no venv, or no package index; SystemLimitError if the disk is full;
 *   AbortError after the signal
 */
export async function pythonEnvironment(request: PythonRequest): Promise<string> {
  const { env, python } = request
  if (python !== undefined) return checked(python, env)
  return knownPython(request) ?? (await made(request))
}

function pythonIn(folder: string): string {
  return join(folder, 'bin', 'python')
}

/** One that somebody else has filled. */
async function checked(python: string, env: NodeJS.ProcessEnv): Promise<string> {
  if ((await programOutput(python, ['--version'], env)) === undefined)
    throw new PythonError(`${python} is no Python that runs`, 'Name one with --python, or leave that out.')
  const modules = ['numpy', 'onnx', 'onnxruntime', 'onnxslim', 'sympy']
  const missing = await programOutput(
    python,
    [
      '-c',
      `import importlib.util as u; print(*[m for m in ${JSON.stringify(modules)} if u.find_spec(m) is None])`,
    ],
    env,
  )
  if (missing?.trim() !== '')
    throw new PythonError(
      `${python} has no ${missing?.trim().split(' ').join(', ') ?? 'packages'}`,
      `${python} -m pip install -r ${requirements}; or leave out --python.`,
    )
  return python
}

async function made({ env, quiet, say, signal }: PythonRequest): Promise<string> {
  const base = await fittingPython(env)
  const folder = environmentFolder(env)
  const partial = `${folder}.partial-${process.pid}`
  const options = { env, quiet, signal }
  removeStale(folder)
  say(`first use: packages of ${requirements} come into ${folder}`)
  try {
    mkdirSync(partial, { recursive: true })
    const noVenv = await runTool(base, ['-m', 'venv', partial], 'the environment cannot be made', {
      ...options,
      quiet: true,
      cwd: partial,
    })
    if (noVenv !== undefined)
      throw new PythonError(
        `${base} makes no environments: ${noVenv.trim().split('\n').at(-1) || 'its module venv is missing'}`,
        'Install it: sudo apt-get install python3-venv; or name a Python that has the packages with --python.',
      )
    const args = ['-m', 'pip', 'install', '--no-input', '--disable-pip-version-check', '--only-binary=:all:']
    const complaints = await runTool(
      pythonIn(partial),
      [...args, ...(quiet ? ['--quiet'] : []), '-r', requirements],
      'the packages cannot be installed',
      { ...options, cwd: partial },
    )
    if (complaints !== undefined)
      throw pipFailure('what int8, float16 and simplify need', complaints, {
        target: `${base} on this machine`,
        kept: 'All other steps go on without.',
      })
    // Somebody else may have been as fast.
    if (!existsSync(folder)) renameSync(partial, folder)
    return pythonIn(folder)
  } catch (error) {
    throw byTrueName('the environment for Python cannot be kept', error)
  } finally {
    rmSync(partial, { recursive: true, force: true })
  }
}

/** What a process left that was killed while it made the environment: hundreds of megabytes. */
function removeStale(folder: string): void {
  if (!existsSync(dirname(folder))) return
  for (const name of readdirSync(dirname(folder))) {
    const pid = Number(/^python-[0-9a-f]+\.partial-(\d+)$/.exec(name)?.[1])
    if (pid > 0 && pid !== process.pid && !isAlive(pid))
      rmSync(join(dirname(folder), name), { recursive: true, force: true })
  }
}

async function fittingPython(env: NodeJS.ProcessEnv): Promise<string> {
  const seen: string[] = []
  for (const python of candidates) {
    const version = (await programOutput(python, ['--version'], env))?.trim()
    const minor = Number(/^Python 3\.(\d+)/.exec(version ?? '')?.[1])
    if (minor >= oldest && minor <= newest) return python
    if (version !== undefined) seen.push(version)
  }
  throw new PythonError(
    seen.length === 0
      ? 'there is no Python, which int8, float16 and simplify need'
      : `int8, float16 and simplify need Python 3.${oldest} to 3.${newest}; here is ${[...new Set(seen)].join(', ')}`,
    'Install it: sudo apt-get install python3 python3-venv; or name one that has the packages with --python. All other steps go on without.',
  )
}
