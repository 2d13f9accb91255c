#!/usr/bin/env node
// `npm run pack:clients`: the client packages in build/, a tarball for `npm install` and a wheel for `pip install`. Prints their paths.
import './lib/right-node.mjs'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { npmOutput } from './lib/npm.mjs'
import { root } from './lib/root.mjs'

class PackFailed extends Error {}

const usage = 'npm run pack:clients -- [--out FOLDER] [--python PYTHON, which has setuptools]'
const stage = mkdtempSync(join(tmpdir(), 'gantry-clients-'))
try {
  const { out, python } = options()
  mkdirSync(out, { recursive: true })
  console.log(packTypeScript(out))
  console.log(packPython(out, python))
} catch (error) {
  if (!(error instanceof PackFailed)) throw error
  console.error(`[pack] ${error.message}`)
  process.exitCode = 1
} finally {
  rmSync(stage, { recursive: true, force: true })
}

function options() {
  try {
    const { values } = parseArgs({ options: { out: { type: 'string' }, python: { type: 'string' } } })
    return { out: resolve(values.out ?? join(root, 'build')), python: values.python }
  } catch (error) {
    throw new PackFailed(`${error.message}\n[pack] ${usage}`)
  }
}

/** @returns the path of the tarball. */
function packTypeScript(out) {
  const folder = staged('typescript', ['package.json', 'README.md'])
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  run(process.execPath, [tsc, '-p', join(root, 'clients/typescript'), '--outDir', join(folder, 'dist')])
  const answer = JSON.parse(
    npmOutput(['pack', '--json', '--ignore-scripts', '--pack-destination', out], folder),
  )
  const [{ filename }] = Array.isArray(answer) ? answer : Object.values(answer)
  return join(out, filename.replace('@', '').replace('/', '-'))
}

/** @param given - a Python to build with; without one it is a new environment, and pip brings setuptools. @returns the path of the wheel. */
function packPython(out, given) {
  const folder = staged('python', ['pyproject.toml', 'README.md', 'src'])
  const python = given ?? join(stage, 'venv/bin/python')
  if (given === undefined) run('python3', ['-m', 'venv', join(stage, 'venv')])
  const wheels = join(stage, 'wheels')
  const isolation = given === undefined ? [] : ['--no-build-isolation']
  run(python, ['-m', 'pip', 'wheel', '--quiet', '--no-deps', ...isolation, '--wheel-dir', wheels, folder])
  const [wheel] = readdirSync(wheels)
  cpSync(join(wheels, wheel), join(out, wheel))
  return join(out, wheel)
}

/** Copies what belongs into a package to where nothing else lies about. */
function staged(language, paths) {
  const folder = join(stage, language)
  for (const path of paths)
    cpSync(join(root, 'clients', language, path), join(folder, path), {
      recursive: true,
      filter: (source) => !/__pycache__|\.egg-info/.test(source),
    })
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  return folder
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new PackFailed(`${command} failed: ${error?.message ?? 'the lines above say why'}`)
}
