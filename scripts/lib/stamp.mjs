import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './root.mjs'

/** Every file below the given paths (files or folders, relative to the root), sorted; what does not exist is left out. */
export function filesBelow(paths) {
  const found = []
  const visit = (path) => {
    const absolute = join(root, path)
    if (!existsSync(absolute)) return
    if (!statSync(absolute).isDirectory()) return void found.push(path)
    for (const name of readdirSync(absolute)) if (name !== 'node_modules') visit(join(path, name))
  }
  paths.forEach(visit)
  return found.sort()
}

/** Hash of names and contents of everything below `paths`: what a result made from them depends on. */
export function hashOf(paths) {
  const hash = createHash('sha256')
  for (const file of filesBelow(paths)) {
    hash.update(`${file}\0`)
    hash.update(readFileSync(join(root, file)))
  }
  return hash.digest('hex')
}

/** Runs `make` unless it already ran for exactly these inputs; the stamp is written only after it returned. */
export function whenChanged(stampPath, inputs, make) {
  const stamp = join(root, stampPath)
  const hash = hashOf(inputs)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return false
  make()
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, hash)
  return true
}
