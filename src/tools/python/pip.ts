import { programOutput } from '../../lifecycle/program-output.js'
import { PythonError } from './python-error.js'

/**
 * The Python whose pip fetches packages: the index, its password, the proxy and certificates are those of pip's own settings.
 *
 * @throws PythonError if there is none
 */
export async function findPip(env: NodeJS.ProcessEnv): Promise<string> {
  for (const python of ['python3', 'python'])
    if ((await programOutput(python, ['-m', 'pip', '--version'], env)) !== undefined) return python
  throw new PythonError(
    'there is no pip, which fetches from PyPI',
    'Install it: sudo apt-get install python3-pip. It is needed for the installation alone.',
  )
}

/** Whom packages are for, such as `Linux on x64`, and what is left of them when a try fails. */
export type PipUse = Readonly<{ target: string; kept: string }>

/** What pip complained of when it brought a requirement, in a sentence, and what to do about it. */
export function pipFailure(requirement: string, complaints: string, { target, kept }: PipUse): PythonError {
  const settings = "pip's own settings count: PIP_INDEX_URL, HTTPS_PROXY, PIP_CERT, `pip config list`."
  const unreached = /Retrying \(.*?(?:after connection broken by '(\w+)|$)/m.exec(complaints)
  if (unreached !== null || /Could not fetch URL|ConnectionError|Read timed out/.test(complaints))
    return new PythonError(
      `${requirement} cannot be downloaded: pip does not reach its package index${clause(unreached?.[1])}`,
      `Look at the network and the proxy; ${settings} ${kept}`,
    )
  if (/DO NOT MATCH THE HASHES|IncompleteRead|not a valid wheel|is invalid/i.test(complaints))
    return new PythonError(
      `${requirement} was damaged on its way: it is not what the package index promised`,
      'Try again; if it happens again, look at the proxy or the mirror between here and the index.',
    )
  if (/No matching distribution|from versions:/.test(complaints))
    return new PythonError(
      `the package index of pip has no ${/requirement (\S+==\S+)/.exec(complaints)?.[1] ?? requirement} for ${target}`,
      `If it should have it, it may not have been reached; ${settings}`,
    )
  const error = /^ERROR: (.*)$/m.exec(complaints)?.[1] ?? complaints.trim().split('\n').at(-1) ?? ''
  return new PythonError(`${requirement} cannot be downloaded: ${error}`, `Ask pip; ${settings}`)
}

function clause(text: string | undefined): string {
  return text === undefined ? '' : ` (${text})`
}
