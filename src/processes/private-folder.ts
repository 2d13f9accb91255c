import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../lifecycle/alive.js'
import { fits, makeTemporaryFolder, socketBase } from '../lifecycle/temporary-folder.js'

/** How names of private folders begin. */
export const privateFolderPrefix = 'gantry-run-'
const ownerFile = 'owner'

/**
 * A folder for this user alone, until the service ends. Those that killed services have left are removed.
 *
 * Whose a folder is stands in its file `owner`: a process and the namespace of its number. One from elsewhere, another container for
 * instance, is left alone, since nobody here knows whether its process lives.
 *
 * @throws TemporaryFolderError
 */
export function createPrivateFolder(base = tmpdir()): string {
  for (const dir of abandonedFolders(base)) rmSync(dir, { recursive: true, force: true })
  const dir = makeTemporaryFolder(privateFolderPrefix, base)
  writeFileSync(join(dir, ownerFile), `${process.pid} ${namespace()}`)
  return dir
}

/**
 * Where sockets of a private folder lie: in it, or in one elsewhere where its path is too long for them.
 *
 * @param longestName - of the sockets.
 * @throws TemporaryFolderError
 */
export function socketFolderOf(dir: string, longestName: string): string {
  if (fits(join(dir, longestName))) return dir
  return createPrivateFolder(socketBase(join(`${privateFolderPrefix}XXXXXX`, longestName), dir))
}

function abandonedFolders(base: string): readonly string[] {
  return namesIn(base)
    .filter((name) => name.startsWith(privateFolderPrefix))
    .map((name) => join(base, name))
    .filter(isAbandoned)
}

/** None where it cannot be read: whoever makes something in it is told why. */
function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
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
