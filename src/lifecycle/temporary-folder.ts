import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { access, constants, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { GantryError } from '../errors.js'
import { isThere, systemLimit } from './system-limit.js'

/** Of the path of a socket, in bytes. The kernel cuts a longer one without a word, so that two of them are the same. */
const longestSocketPath = 107

/** The temporary folder is not there, or nothing can be made in it. */
export class TemporaryFolderError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(dir: string, cause: unknown) {
    super(`the temporary folder ${dir} (TMPDIR) cannot be used: ${reasonOf(cause)}`, { cause })
    this.name = 'TemporaryFolderError'
    this.hint =
      'Set TMPDIR to a folder in which this user can make files and sockets; without it that is /tmp.'
  }
}

/**
 * A new folder among the temporary ones, for this user alone.
 *
 * @throws TemporaryFolderError
 */
export function makeTemporaryFolder(prefix: string, base = tmpdir()): string {
  try {
    return mkdtempSync(join(base, prefix))
  } catch (error) {
    throw new TemporaryFolderError(base, error)
  }
}

/**
 * The temporary folder where a socket `below` it has a path that the kernel takes whole; else the first of the usual ones in which a folder
 * can be made. Folders of build and batch systems are that long.
 *
 * @param below - longest path of a socket under the folder.
 * @throws TemporaryFolderError where there is none.
 */
export function socketBase(below: string, base = tmpdir(), others = usualSocketBases()): string {
  if (fits(join(base, below))) return base
  const other = others.find((dir) => fits(join(dir, below)) && canMakeFolder(dir))
  if (other !== undefined) return other
  const longest = longestSocketPath - Buffer.byteLength(`/${below}`)
  throw new TemporaryFolderError(
    base,
    new Error(
      `its path is longer than the ${longest} bytes that sockets allow, and /tmp cannot be used either`,
    ),
  )
}

export function fits(socketPath: string): boolean {
  return Buffer.byteLength(socketPath) <= longestSocketPath
}

/** Where sockets lie that would have too long a path in the temporary folder. */
export function usualSocketBases(): readonly string[] {
  const { XDG_RUNTIME_DIR: own } = process.env
  return [...(own === undefined || own === '' ? [] : [own]), '/tmp', '/var/tmp', '/dev/shm']
}

function canMakeFolder(base: string): boolean {
  try {
    rmSync(mkdtempSync(join(base, 'gantry-')), { recursive: true, force: true })
    return true
  } catch {
    return false
  }
}

/** Makes what a service makes there, and takes it away again: folders, files and sockets. @throws TemporaryFolderError */
export async function tryTemporaryFolder(base = tmpdir()): Promise<void> {
  const dir = makeTemporaryFolder('gantry-', base)
  try {
    await writeFile(join(dir, 'file'), 'x')
    await trySocket(dir, base)
  } catch (error) {
    throw error instanceof TemporaryFolderError ? error : new TemporaryFolderError(base, error)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function trySocket(dir: string, base: string): Promise<void> {
  const isShort = fits(join(dir, 'socket'))
  const own = isShort ? dir : makeTemporaryFolder('gantry-', socketBase('gantry-XXXXXX/socket', base))
  const server = createServer()
  try {
    await once(server.listen(join(own, 'socket')), 'listening')
  } finally {
    server.close()
    if (!isShort) await rm(own, { recursive: true, force: true })
  }
}

/**
 * Why nothing can be written into a folder; undefined where it can. Of one that is not there yet the nearest that is has to take a folder,
 * which is asked and not tried: it is not ours. Nothing is left of the trial.
 */
export async function whyNotWritable(dir: string): Promise<string | undefined> {
  const there = nearest(resolve(dir))
  try {
    if (there !== resolve(dir)) {
      // By the slash it has to be a folder.
      await access(join(there, '/'), constants.W_OK | constants.X_OK)
      // Where nobody can make anything, whatever its rights say, as below /proc.
      if (notKept.has((await statfs(there)).type)) return words['ENOENT']
      return undefined
    }
    const trial = await mkdtemp(join(there, '.gantry-'))
    try {
      await writeFile(join(trial, 'file'), 'x')
    } finally {
      await rm(trial, { recursive: true, force: true })
    }
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

/** Types of `statfs(2)`: /proc and /sys. */
const notKept: ReadonlySet<number> = new Set([0x9fa0, 0x62656572])

function nearest(dir: string): string {
  return isThere(dir) || dir === dirname(dir) ? dir : nearest(dirname(dir))
}

const words: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'it is not a folder, or lies below a file',
  EEXIST: 'it is not a folder',
  ENAMETOOLONG: 'its path is too long',
}

function reasonOf(cause: unknown): string {
  const { code = '', message } =
    cause instanceof Error ? (cause as NodeJS.ErrnoException) : { message: String(cause) }
  return words[code] ?? systemLimit(cause)?.reason ?? message
}
