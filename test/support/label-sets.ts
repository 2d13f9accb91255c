import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { redPicture } from './red-pictures.js'
import { tempDir } from './temp-dir.js'

/** Files of a data set in a folder of its own: texts as they are, `.png` of 64 x 64 with that much red. */
export async function setOf(files: Readonly<Record<string, string | number>>): Promise<string> {
  const dir = tempDir()
  for (const [name, content] of Object.entries(files)) {
    const path = join(dir, name)
    mkdirSync(dirname(path), { recursive: true })
    const bytes =
      typeof content === 'number' ? await redPicture({ widthPx: 64, heightPx: 64 }, content) : content
    writeFileSync(path, bytes)
  }
  return dir
}

/** What the model `red` finds, as a line of a label file. @param id - number of the class. */
export function redLine(id: number): string {
  return `${id} 0.5 0.25 0.3125 0.125\n`
}
