import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { onPath } from '../../../scripts/lib/system-tools.mjs'
import {
  environmentFolder,
  knownPython,
  pythonEnvironment,
} from '../../../src/tools/python/python-environment.js'
import { PythonIndex } from '../../support/python-index.js'
import { tempDir } from '../../support/temp-dir.js'

const request = (env: NodeJS.ProcessEnv, python?: string) => ({
  env,
  python,
  quiet: true,
  say: () => undefined,
})

/** A folder of programs with one that is called `python3` and does that. */
function programs(script: string): string {
  const folder = tempDir()
  writeFileSync(join(folder, 'python3'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return folder
}

describe('R54: an environment for Python that cannot be made', () => {
  it('says which Python there is, and which are needed', async () => {
    // One that is there already is taken, whatever Python there is.
    const XDG_CACHE_HOME = tempDir()
    const PATH = programs('echo Python 3.9.2')
    await expect(pythonEnvironment(request({ PATH, XDG_CACHE_HOME }))).rejects.toThrow(
      'need Python 3.11 to 3.13; here is Python 3.9.2',
    )
    const nothing = request({ PATH: tempDir(), XDG_CACHE_HOME })
    await expect(pythonEnvironment(nothing)).rejects.toThrow('there is no Python')
  })

  it('says that venv is missing, and removes what a killed process left', async () => {
    const cache = tempDir()
    mkdirSync(join(cache, 'gantry', 'python-0123456789ab.partial-999999999', 'bin'), { recursive: true })
    const venv = programs(
      'case "$*" in --version) echo Python 3.12.1;; *) echo no module named venv >&2; exit 1;; esac',
    )
    const work = pythonEnvironment(request({ PATH: `${venv}:${process.env.PATH}`, XDG_CACHE_HOME: cache }))
    await expect(work).rejects.toThrow('python3 makes no environments: no module named venv')
    expect(readdirSync(join(cache, 'gantry'))).toEqual([])
  })

  it.skipIf(!onPath('python3'))(
    'says that the index has not what is required, and leaves nothing',
    async () => {
      const index = await PythonIndex.start()
      const cache = tempDir()
      const env = {
        ...process.env,
        XDG_CACHE_HOME: cache,
        PIP_CONFIG_FILE: '/dev/null',
        PIP_INDEX_URL: index.url,
        PIP_RETRIES: '0',
      }
      await expect(pythonEnvironment(request(env))).rejects.toThrow(
        /the package index of pip has no \S+==\S+ for python3/,
      )
      expect(readdirSync(join(cache, 'gantry'))).toEqual([])
      expect(knownPython({ env })).toBeUndefined()
    },
    120_000,
  )

  it('says what a Python that is named lacks', async () => {
    const lacking = join(programs('echo onnx onnxslim'), 'python3')
    await expect(pythonEnvironment(request({}, lacking))).rejects.toThrow('has no onnx, onnxslim')
    await expect(pythonEnvironment(request({}, '/nowhere/python'))).rejects.toThrow(
      '/nowhere/python is no Python that runs',
    )
  })
})

it('has one environment for each list of requirements, in the cache of the user', () => {
  expect(environmentFolder({ XDG_CACHE_HOME: '/cache' })).toMatch(/^\/cache\/gantry\/python-[0-9a-f]{12}$/)
  expect(environmentFolder({ HOME: '/home/anna' })).toMatch(/^\/home\/anna\/\.cache\/gantry\/python-/)
  expect(existsSync(environmentFolder({ XDG_CACHE_HOME: tempDir() }))).toBe(false)
})
