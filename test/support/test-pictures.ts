import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from '../../src/lifecycle/sharp.js'
import { demoClips, takePictures } from '../../src/tools/transform/frames.js'
import { tempDir } from './temp-dir.js'

/** A folder with two red pictures and one of another size. */
export async function redPictures(): Promise<string> {
  const folder = tempDir()
  for (const [at, size] of [64, 64, 100].entries())
    await sharp({ create: { width: size, height: 64, channels: 3, background: { r: 255 - at, g: 9, b: 9 } } })
      .png()
      .toFile(join(folder, `${at}.png`))
  return folder
}

/** A folder with pictures of the demo's clips, for a file of tests; whoever takes it removes it. */
export async function demoPictures(count: number): Promise<string> {
  const scratch = mkdtempSync(join(tmpdir(), 'gantry-test-'))
  const { paths } = await takePictures({ sources: demoClips(), count, scratch })
  if (paths.length !== count) throw new Error(`${paths.length} pictures in ${readdirSync(scratch).join()}`)
  return scratch
}
