import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { encoderArguments } from '../../src/sources/ffmpeg-command.js'
import { type Scenario } from '../scenario/schema.js'
import { type Truth } from '../truth/format.js'
import { truthJson, truthOf } from '../truth/truth.js'
import { frameCountOf, framesPerSecond, pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { RenderBrowser } from './browser.js'
import { Encoder } from './encoder.js'
import { drawPictures } from './pictures.js'

/** A rendered scenario on disk, with its truth. */
export interface Clip {
  readonly videoPath: string
  readonly truthPath: string
  readonly truth: Truth
}

export interface ClipOptions {
  readonly cacheFolder?: string
  /** Light directions of the still background; fewer is faster and rougher. */
  readonly bakePasses?: number
  readonly onProgress?: (this: void, stage: 'truth' | 'video', done: number, total: number) => void
}

const encoding = {
  widthPx: pictureWidthPx,
  heightPx: pictureHeightPx,
  fps: framesPerSecond,
  crf: 24,
  maxKbps: 1700,
}
const simFolder = fileURLToPath(new URL('..', import.meta.url))
export const defaultCacheFolder = fileURLToPath(new URL('../../.cache/sim', import.meta.url))

/**
 * The clip of a scenario, from the cache if this scenario was rendered by this code before. Rendering is written beside
 * its final place and renamed, so that a cut-off run leaves nothing half done.
 */
export async function renderedClip(
  scenario: Scenario,
  { cacheFolder = defaultCacheFolder, bakePasses = 16, onProgress }: ClipOptions = {},
): Promise<Clip> {
  const folder = join(cacheFolder, `${scenario.name}-${await digestOf(scenario, bakePasses)}`)
  const clip = { videoPath: join(folder, 'clip.mp4'), truthPath: join(folder, 'truth.json') }
  if (!(await exists(clip.videoPath))) {
    await mkdir(cacheFolder, { recursive: true })
    const draft = await mkdtemp(`${folder}.draft-`)
    try {
      const truth = truthOf(scenario, { onFrame: (done, total) => onProgress?.('truth', done, total) })
      await writeFile(join(draft, 'truth.json'), truthJson(truth))
      await encodeScenario(scenario, join(draft, 'clip.mp4'), bakePasses, onProgress)
      await rename(draft, folder).catch(async (error: unknown) => {
        // Another run finished the same clip first; theirs is as good.
        if (!(await exists(clip.videoPath))) throw error
      })
    } finally {
      await rm(draft, { recursive: true, force: true })
    }
  }
  return { ...clip, truth: JSON.parse(await readFile(clip.truthPath, 'utf8')) as Truth }
}

async function encodeScenario(
  scenario: Scenario,
  path: string,
  bakePasses: number,
  onProgress: ClipOptions['onProgress'],
): Promise<void> {
  const total = frameCountOf(scenario.durationS)
  await using browser = await RenderBrowser.open()
  await encodeFrames(
    browser,
    scenario,
    range(0, total),
    path,
    (done) => onProgress?.('video', done, total),
    bakePasses,
  )
}

/** Renders some frames of a scenario into an MP4 file. */
export async function encodeFrames(
  browser: RenderBrowser,
  scenario: Scenario,
  frames: readonly number[],
  path: string,
  onFrame: (done: number) => void,
  bakePasses?: number,
): Promise<void> {
  const encoder = Encoder.open({ path, ...encoding })
  try {
    let done = 0
    await drawPictures(
      browser,
      scenario,
      { frames, ...(bakePasses === undefined ? {} : { bakePasses }) },
      async (_, rgba) => {
        await encoder.write(rgba)
        onFrame(++done)
      },
    )
    await encoder.finish()
  } catch (error) {
    encoder.abort()
    throw error
  }
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i)
}

/** Of the scenario, of all code that shapes a picture or the truth, and of how ffmpeg is asked to encode. */
async function digestOf(scenario: Scenario, bakePasses: number): Promise<string> {
  const encoder = encoderArguments({ path: 'clip.mp4', ...encoding })
  const hash = createHash('sha256').update(JSON.stringify([scenario, bakePasses, encoder]))
  const files = (await readdir(simFolder, { recursive: true })).filter((file) => file.endsWith('.ts')).sort()
  for (const file of files) hash.update(file).update(await readFile(join(simFolder, file)))
  return hash.digest('hex').slice(0, 16)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
