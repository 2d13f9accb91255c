import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { CudaPackage } from './cuda-packages.js'
import { runTool, type ToolOptions } from '../../lifecycle/run-tool.js'
import { pipFailure } from '../../tools/python/pip.js'

/** Node itself needs glibc 2.28: what was built for that, or for an older one, runs wherever it does. */
const platforms = [
  ...Array.from({ length: 12 }, (_, index) => `manylinux_2_${28 - index}_x86_64`),
  'manylinux2014_x86_64',
]

/** Whose Python a wheel is for does not matter to the libraries in it; one has to be named. */
const pythonVersion = '3.12'

const use = {
  target: 'Linux on x64',
  kept: 'What was downloaded is kept: the same command goes on.',
}

/**
 * Downloads a wheel, and checks it against the checksum of the index. One that is in `folder` from before, and whole, is taken.
 *
 * @returns its path.
 * @throws PythonError if there is no such package for this machine, the index cannot be reached, or what came is damaged
 */
export async function downloadWheel(
  python: string,
  { name, versions }: CudaPackage,
  folder: string,
  options: Omit<ToolOptions, 'cwd'>,
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  // What a pip that was killed left there.
  for (const rest of readdirSync(folder).filter((file) => !file.endsWith('.whl')))
    rmSync(join(folder, rest), { recursive: true })
  const requirement = `${name}${versions}`
  const args = ['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--disable-pip-version-check']
  // It would keep a second copy of gigabytes.
  args.push('--no-cache-dir', '--no-input', ...(options.quiet ? ['--quiet'] : []))
  args.push('--implementation', 'cp', '--python-version', pythonVersion)
  args.push(...platforms.flatMap((platform) => ['--platform', platform]), '--dest', '.', requirement)
  const complaints = await runTool(python, args, `${requirement} cannot be downloaded`, {
    ...options,
    // Where there is room for it: the temporary folder of the system may be a part of the memory.
    env: { ...options.env, TMPDIR: folder },
    cwd: folder,
  })
  if (complaints !== undefined) throw pipFailure(requirement, complaints, use)
  const wheels = readdirSync(folder).filter((file) => file.endsWith('.whl'))
  const wheel = wheels.sort(byVersion).at(-1)
  if (wheel === undefined) throw pipFailure(requirement, 'pip left no file', use)
  return join(folder, wheel)
}

const byVersion = new Intl.Collator('en', { numeric: true }).compare
