import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../lifecycle/alive.js'

const prefix = 'gantry-run-'
const ownerFile = 'owner'

/**
 * A folder for this user alone, until the service ends. Those that killed services have left are removed.
 *
 * Whose a folder is stands in its file `owner`: a process and the namespace of its number. One from elsewhere, another container for
 * instance, is left alone, since nobody here knows whether its process lives.
 */
export function createPrivateFolder(base = tmpdir()): string {
  for (const dir of abandonedFolders(base)) rmSync(dir, { recursive: true, force: true })
  const dir = mkdtempSync(join(base, prefix))
  writeFileSync(join(dir, ownerFile), `${process.pid} ${namespace()}`)
  return dir
}

function abandonedFolders(base: string): readonly string[] {
  return readdirSync(base)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(base, name))
    .filter(isAbandoned)
}

function isAbandoned(dir: string): boolean {
  const [pid = '', where = ''] = ownerOf(dir).split(' ')
  return /^\d+$/.test(pid) && where === namespace() && !isAlive(Number(pid))
}

/** Empty for a folder that another user has, or that is not finished. */
function ownerOf(dir: string): string {
  try {
    return readFileSync(join(dir, ownerFile), 'utf8')
  } catch {
    return ''
  }
}

function namespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return 'none'
  }
}
