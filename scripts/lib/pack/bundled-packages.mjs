import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { npm } from '../npm.mjs'
import { root } from '../root.mjs'
import { PackError } from './pack-error.mjs'
import { isForOthers, neededBinaries } from './platforms.mjs'

/** What a running service reads nothing of: maps, types, reports. It is a fifth of all packages. */
const notRun = /\.map$|\.[cm]?ts$|\.tsbuildinfo$|^fluent-ffmpeg\/coverage\//

/** Scripts that npm runs when a package is installed. They fetch or compile what lies in the package already. */
const atInstall = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare']

/**
 * Fills `folder` with the packages of package-lock.json that a service needs on a platform, also on another one than this: with its
 * binaries alone, and without scripts that run at their installation.
 *
 * @throws PackError where npm fails, or a binary for the platform is missing
 */
export function bundlePackages(folder, platform) {
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(root, name), join(folder, name))
  const { os, cpu, libc } = platform
  const system = ['--os', os, '--cpu', cpu, '--libc', libc]
  if (!npm(['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', ...system], folder))
    throw new PackError('npm could not bring the packages: the lines above say why')
  withoutTools(join(folder, 'package.json'))
  const modules = join(folder, 'node_modules')
  const missing = neededBinaries(platform).filter((path) => !existsSync(join(modules, path)))
  if (missing.length > 0)
    throw new PackError(`packages for ${os} on ${cpu} are incomplete, without ${missing.join(', ')}`)
}

/** npm lists nothing of a folder that lacks what its package.json names, be it for development. */
function withoutTools(path) {
  const { devDependencies: _, ...manifest } = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, JSON.stringify(manifest))
}

/** Takes out what a service does not run. After the inventory, which reads licences and records of npm. */
export function trimPackages(folder, platform) {
  const modules = join(folder, 'node_modules')
  const entries = readdirSync(modules, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    const within = path.slice(modules.length + 1).replaceAll(sep, '/')
    if (entry.isFile() && (notRun.test(within) || isForOthers(within, platform))) rmSync(path)
    else if (entry.name === 'package.json' && isPackage(within)) withoutInstallation(path, modules)
  }
  for (const name of ['.bin', '.package-lock.json'])
    rmSync(join(modules, name), { recursive: true, force: true })
  for (const name of ['package-lock.json', '.npmrc']) rmSync(join(folder, name))
}

/** `a/package.json`, `@a/b/node_modules/c/package.json`; other files of that name are parts of a package. */
function isPackage(path) {
  return /^(?:(?:@[^/]+\/)?[^/@]+\/(?:node_modules\/)?)+package\.json$/.test(path)
}

/** Of optional packages only those that are there are named: npm asks a registry for any other. */
function withoutInstallation(path, modules) {
  const manifest = JSON.parse(readFileSync(path, 'utf8'))
  if (manifest.name === undefined) return
  for (const script of atInstall) delete manifest.scripts?.[script]
  const present = (name) =>
    existsSync(join(path, '..', 'node_modules', name)) || existsSync(join(modules, name))
  for (const kind of ['optionalDependencies', 'dependencies', 'peerDependencies'])
    for (const name of Object.keys(manifest[kind] ?? {}))
      if (kind !== 'dependencies' && !present(name)) delete manifest[kind][name]
  writeFileSync(path, `${JSON.stringify(manifest, undefined, 2)}\n`)
}
