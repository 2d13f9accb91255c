import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { npm } from './npm.mjs'
import { root } from './root.mjs'

/** Where Node is brought to when that of the machine is too old. */
const ownFolder = join(root, '.node')

const binary = (folder) => join(folder, 'bin/node')

function versionAt(path) {
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().replace(/^v/, '') : undefined
}

const fits = (version, wanted) => version === wanted || version?.startsWith(`${wanted}.`) === true

/**
 * Brings a Node from the npm registry into a folder, unless it is there, and touches nothing else on the machine.
 *
 * @param version - `24` for the newest of that line, or a whole one.
 * @returns the path of the binary, or undefined where there is none for this machine or the registry cannot be reached.
 */
function bring(version, folder, beforehand = () => {}) {
  const path = binary(folder)
  if (fits(versionAt(path), version)) return path
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return undefined
  const name = `node-linux-${process.arch}`
  beforehand(name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const args = ['install', '--prefix', folder, '--no-save', '--no-package-lock', '--ignore-scripts']
  // Whoever asked has one line for a failure, and shows it soon.
  args.push('--loglevel=silent', '--fetch-retries=1')
  if (!npm([...args, `${name}@${version}`], folder)) return undefined
  symlinkSync(`../node_modules/${name}/bin/node`, path)
  return fits(versionAt(path), version) ? path : undefined
}

/** Node of that version in the clone's own folder `.node`. @returns as `bring`. */
export const bringOwnNode = (version, beforehand) => bring(String(version), ownFolder, beforehand)

const testFolder = (version) =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'gantry-test', `node-${version}`)

/** A Node of another version for tests, kept between runs; undefined where nobody has brought it. */
export function testNode(version) {
  const path = binary(testFolder(version))
  return fits(versionAt(path), version) ? path : undefined
}

/** Brings each of `versions` for tests. Returns a line for each that is missing. */
export function ensureTestNodes(versions, say) {
  return versions.flatMap((version) => {
    const path = bring(version, testFolder(version), (name) =>
      say(`bringing Node ${version} for tests (npm package ${name}) ...`),
    )
    return path ? [] : [`missing: Node ${version} (tests on other versions of Node), from the npm registry`]
  })
}
