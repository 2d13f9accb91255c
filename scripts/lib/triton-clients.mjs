import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { debianLibraries } from './debian-libraries.mjs'
import { root } from './root.mjs'
import { onPath } from './system-tools.mjs'

const requirements = join(root, 'test/clients/requirements.txt')
const perfAnalyzer = '2.60.0'
/** Library version that perf_analyzer was built against; older systems get it beside their own. */
const libraryRelease = 'trixie'
const libraries = ['libc6', 'libstdc++6', 'libgcc-s1', 'libssl3t64', 'zlib1g', 'libzstd1']

/** Where the clients of the model server's tests are kept between runs: one folder for each set of versions. */
function clientsFolder() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const key = createHash('sha256')
    .update(readFileSync(requirements))
    .update(perfAnalyzer)
    .update(libraryRelease)
  return join(cache, 'gantry-test', `triton-clients-${key.digest('hex').slice(0, 12)}`)
}

/** Python with tritonclient, and perf_analyzer; undefined where they are not installed. */
export function tritonClients() {
  const folder = clientsFolder()
  if (!existsSync(join(folder, 'complete'))) return undefined
  return { python: join(folder, 'venv/bin/python'), perfAnalyzer: join(folder, 'perf_analyzer') }
}

/** Installs Triton's clients from PyPI, into a folder of their own. Returns a line for each thing that is missing. */
export function ensureTritonClients(say) {
  if (tritonClients()) return []
  const why = 'tests of the model server with the clients of Triton'
  if (!onPath('python3')) return [`missing: python3 (${why}). Install it: sudo apt-get install python3-venv`]
  const folder = clientsFolder()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  say('installing tritonclient and perf_analyzer (pip) ...')
  const problem = installClient(folder) ?? installPerfAnalyzer(folder, say)
  if (problem) return [`missing: ${problem} (${why})`]
  writeFileSync(join(folder, 'complete'), '')
  return []
}

function run(command, args, options = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options })
  if (status === 0) return stdout
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`)
  return undefined
}

function installClient(folder) {
  const venv = join(folder, 'venv')
  const made = run('python3', ['-m', 'venv', venv]) !== undefined
  const installed =
    made && run(join(venv, 'bin/pip'), ['install', '--quiet', '-r', requirements]) !== undefined
  return installed ? undefined : 'tritonclient'
}

/** Its wheel names the platform it was built on. Pip passes it over on older ones, which can run it beside newer libraries. */
function installPerfAnalyzer(folder, say) {
  const unpacked = join(folder, 'perf-analyzer')
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const pip = ['install', '--quiet', '--no-deps', '--only-binary=:all:', '--target', unpacked]
  const platforms = ['2_38', '2_39'].flatMap((version) => ['--platform', `manylinux_${version}_${machine}`])
  const found = run(join(folder, 'venv/bin/pip'), [...pip, ...platforms, `perf-analyzer==${perfAnalyzer}`])
  if (found === undefined) return 'perf_analyzer'
  const binary = join(unpacked, 'perf_analyzer/bin/perf_analyzer')
  run('chmod', ['+x', binary])
  const starts = (command) =>
    spawnSync(command[0], [...command.slice(1), '--version'], { stdio: 'ignore' }).status === 0
  let command = [binary]
  if (!starts(command)) {
    const loader = newerLibraries(join(folder, 'libraries'), say)
    if (loader === undefined) return `libraries for perf_analyzer (those of Debian ${libraryRelease})`
    command = [...loader, binary]
  }
  if (!starts(command)) return 'libraries for perf_analyzer'
  const quoted = command.map((word) => `'${word}'`).join(' ')
  writeFileSync(join(folder, 'perf_analyzer'), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 })
  return undefined
}

/** Libraries of a newer Debian release, beside those of the system. How to start a program with them. */
function newerLibraries(folder, say) {
  const unpacked = debianLibraries(folder, { release: libraryRelease, packages: libraries }, say)
  return unpacked && loaderOf(unpacked)
}

function loaderOf(unpacked) {
  const triplet = readdirSync(join(unpacked, 'usr/lib')).find((name) => name.endsWith('-linux-gnu'))
  const folder = join(unpacked, 'usr/lib', triplet ?? '')
  const loader = readdirSync(folder).find((name) => name.startsWith('ld-linux'))
  return loader === undefined ? undefined : [join(folder, loader), '--library-path', folder]
}
