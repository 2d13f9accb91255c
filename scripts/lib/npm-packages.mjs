import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from './npm.mjs'
import { root } from './root.mjs'

function packagesOf(lockFile) {
  const path = join(root, lockFile)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : undefined
}

/**
 * Whether `node_modules` is what the lock file says, by npm's own record of what it put there. Packages for other platforms
 * may be absent.
 */
export function packagesAreCurrent(
  locked = packagesOf('package-lock.json'),
  installed = packagesOf('node_modules/.package-lock.json'),
) {
  if (!locked || !installed) return false
  return Object.entries(locked).every(([path, { version, integrity, optional }]) => {
    if (path === '') return true
    const found = installed[path]
    if (!found) return optional === true
    return found.version === version && found.integrity === integrity
  })
}

/** Runs `npm ci` unless the packages are there. Returns the line to show when that fails. */
export function installPackages(say) {
  if (packagesAreCurrent()) return undefined
  say('installing the npm packages of package-lock.json (npm ci) ...')
  if (npm(['ci'], root)) return undefined
  return 'npm ci failed: see above. Behind a proxy or without network, set the registry with `npm config set registry URL`.'
}
