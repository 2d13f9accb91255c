import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { byFileName } from '../../../sources/media-names.js'
import { BatchInputError } from '../batch-errors.js'

/** Folders this deep are no place for pictures, but a circle of mounts. */
const mostLevels = 64

/**
 * Files below a folder, by their paths from it, in the order of their names; each folder after the files beside it. Names that begin with a
 * dot are left out. Links to files are followed, links to folders are not. The names of one folder at each level are held.
 *
 * @param levels - how many levels of folders are looked into; 1 is the folder itself.
 * @throws BatchInputError for a folder that cannot be read
 */
export async function* walkFolder(folder: string, levels = mostLevels): AsyncGenerator<string, void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new BatchInputError(
      `folder ${folder} cannot be read: ${error.code ?? error.message}`,
      'See that it is there and may be read by this user.',
      { cause: error },
    )
  })
  const names = entries.filter(({ name }) => !name.startsWith('.'))
  const folders = names.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const files: string[] = []
  for (const entry of names)
    if (entry.isFile() || (entry.isSymbolicLink() && (await isFile(join(folder, entry.name)))))
      files.push(entry.name)
  yield* files.sort(byFileName)
  if (levels <= 1) return
  for (const name of folders.sort(byFileName))
    for await (const below of walkFolder(join(folder, name), levels - 1)) yield join(name, below)
}

async function isFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.isFile() ?? false
}
