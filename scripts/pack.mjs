#!/usr/bin/env node
// `npm run pack -- linux-x64`: a tarball in build/ that `npm install --global` installs anywhere on that platform, also without a
// registry: every package that a service needs is inside, and nothing runs at its installation.
import './lib/right-node.mjs'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { BuildFailed, buildServer, buildWeb } from './lib/build.mjs'
import { packagesAreCurrent } from './lib/npm-packages.mjs'
import { bundlePackages, trimPackages } from './lib/pack/bundled-packages.mjs'
import { commit, ownFiles, uncommitted } from './lib/pack/own-files.mjs'
import { packedManifest } from './lib/pack/own-manifest.mjs'
import { PackError } from './lib/pack/pack-error.mjs'
import { platforms } from './lib/pack/platforms.mjs'
import { writeTarball } from './lib/pack/tarball.mjs'
import { root } from './lib/root.mjs'

const say = (line) => process.stderr.write(`[pack] ${line}\n`)
const usage = `npm run pack -- ${Object.keys(platforms).join(' | ')} [--out FOLDER]`

const stage = mkdtempSync(join(tmpdir(), 'gantry-pack-'))
try {
  console.log(pack(parsed(process.argv.slice(2))))
} catch (error) {
  if (!(error instanceof PackError) && !(error instanceof BuildFailed)) throw error
  say(error.message)
  process.exitCode = error.usage === true ? 2 : 1
} finally {
  rmSync(stage, { recursive: true, force: true })
}

function parsed(args) {
  const rest = [...args]
  const at = rest.indexOf('--out')
  const [, out = undefined] = at === -1 ? [undefined, join(root, 'build')] : rest.splice(at, 2)
  const [name, ...more] = rest
  const problem =
    out === undefined
      ? '--out wants a folder'
      : name === undefined
        ? 'for which platform?'
        : !Object.hasOwn(platforms, name)
          ? `there is no package for "${name}"`
          : more.length > 0 && `"${more.join(' ')}" is not understood`
  if (problem) throw new PackError(`${problem}\n[pack] ${usage}`, { usage: true })
  return { name, out }
}

/** @returns the path of the tarball. */
function pack({ name, out }) {
  const platform = platforms[name]
  if (!packagesAreCurrent()) throw new PackError('the packages to build with are missing or old: npm ci')
  const changes = uncommitted()
  const { id, seconds } = commit()
  buildServer(() => say('building ...'))
  buildWeb(() => say('building the dashboard ...'))

  const folder = join(stage, 'package')
  mkdirSync(folder)
  say(`bringing the packages for ${name} ...`)
  bundlePackages(folder, platform)
  const { files, leftOut } = ownFiles()
  for (const file of files.filter((path) => path !== 'package.json')) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  inventory(folder, seconds)
  trimPackages(folder, platform)
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  // Whoever reports a fault of it names a version: it has to tell that no commit has this one.
  const version = changes.length === 0 ? manifest.version : `${manifest.version}+dirty`
  const packed = packedManifest(manifest, locked, platform, version, id)
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(packed, undefined, 2)}\n`)

  mkdirSync(out, { recursive: true })
  const path = join(out, `${manifest.name}-${version}-${name}.tgz`)
  writeTarball(stage, path, seconds)
  tell(path, changes, leftOut)
  return path
}

/** Lists of what is inside, of this platform: written while npm's records are still there. */
function inventory(folder, seconds) {
  const script = join(root, 'scripts/inventory.mjs')
  const { status } = spawnSync(process.execPath, [script, join(folder, 'dist'), folder], {
    stdio: ['ignore', 'ignore', 2],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
  })
  if (status !== 0) throw new PackError('the inventory failed: the lines above say why')
}

function tell(path, changes, leftOut) {
  if (changes.length > 0) {
    say('the tree has changes that no commit has, and the version says so (+dirty):')
    for (const line of changes.slice(0, 5)) say(`  ${line}`)
    if (changes.length > 5) say(`  and ${changes.length - 5} more`)
    say('for a version that others can build again, commit them, or pack a clean clone')
  }
  if (leftOut.length > 0) say(`left out, as neither git nor the build knows it: ${leftOut.join(', ')}`)
  const megabytes = (statSync(path).size / 1e6).toFixed(0)
  say(`${megabytes} MB; install it: npm install --global ${relative(process.cwd(), path)}`)
}
