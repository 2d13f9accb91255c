import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pageBytes } from '../schema.js'
import { StoreFile } from '../store-file.js'
import { DamagedFile } from './damaged-file.js'
import { salvage, type Salvaged } from './salvage.js'
import { WriteAheadLog } from './write-ahead-log.js'

/** What an SQLite file consists of. */
const ends = ['', '-wal', '-shm'] as const
/** Damaged files that stay for people to look at; each may be as large as the store. */
const keptAside = 3

/** What became of a damaged file. */
export type SalvageReport = Salvaged & Readonly<{ /** Where it is now. */ aside: string }>

/** Why what is in the log of the file would not be read, which SQLite itself says nothing of; undefined where all is well. */
export function logDamage(path: string): string | undefined {
  const log = WriteAheadLog.read(`${path}-wal`)
  if (log === undefined || log.frames.length === 0) return undefined
  if (log.isBroken) return `${path}-wal is damaged, and commits behind that place would be passed over`
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  // SQLite deletes the log of a file that is empty.
  return bytes === 0 ? `${path} is empty, and its log is not` : undefined
}

/**
 * Puts what can be read of a damaged file in its place. Until all of it is there the damaged one stays where it is, so that a process that
 * ends meanwhile loses nothing: the next one begins anew.
 *
 * @throws what SQLite and the system throw, such as for a full disk: all is as before then.
 */
export function salvageStore(
  path: string,
  sinks: readonly string[],
  known: Readonly<Record<string, number>>,
  atMs: number,
): SalvageReport {
  const begun = `${path}.salvaging`
  removeAll(begun)
  const from = DamagedFile.open(path, pageBytes)
  try {
    const to = StoreFile.openToWrite(begun)
    let salvaged: Salvaged
    try {
      salvaged = salvage(from, to, sinks, known)
    } finally {
      // The last connection moves the log into the file, on the disk.
      to.close()
    }
    renameSync(begun, wholeName(path))
    return { ...salvaged, aside: finishExchange(path, atMs) ?? path }
  } catch (error) {
    removeAll(begun)
    throw error
  } finally {
    from.close()
  }
}

/** What was salvaged takes its place, also where an earlier process ended in between. @returns where the damaged file is now. */
export function finishExchange(path: string, atMs: number): string | undefined {
  if (!existsSync(wholeName(path))) return undefined
  const aside = moveAside(path, atMs)
  renameSync(wholeName(path), path)
  return aside
}

/** Puts a file that cannot be used out of the way, with what belongs to it. @returns where it is now. */
export function moveAside(path: string, atMs: number): string {
  const stamp = new Date(atMs).toISOString().replaceAll(/[:.]/g, '-')
  const aside = `${path}.damaged-${stamp}`
  for (const end of ends) if (existsSync(path + end)) renameSync(path + end, aside + end)
  forgetOldest(path)
  return aside
}

function forgetOldest(path: string): void {
  const name = `${basename(path)}.damaged-`
  const asides = readdirSync(dirname(path)).filter((file) => file.startsWith(name) && file.endsWith('Z'))
  for (const aside of asides.sort().slice(0, -keptAside)) removeAll(join(dirname(path), aside))
}

function wholeName(path: string): string {
  return `${path}.salvaged`
}

function removeAll(path: string): void {
  for (const end of ends) rmSync(path + end, { force: true })
}
