import { lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A folder among the temporary ones for what can be found out again but takes its time, kept while no service runs. It is this user's alone.
 *
 * @returns undefined where it cannot be had, or somebody else has it.
 */
export function keptFolder(base = tmpdir()): string | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  const dir = join(base, `gantry-kept-${user}`)
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return undefined
  }
  try {
    const stat = lstatSync(dir)
    return stat.isDirectory() && stat.uid === user && (stat.mode & 0o077) === 0 ? dir : undefined
  } catch {
    return undefined
  }
}
