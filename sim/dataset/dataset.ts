import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { DatasetError } from '../errors.js'
import { RenderBrowser } from '../render/browser.js'
import { drawPictures } from '../render/pictures.js'
import { loadScenario, scenarioNames } from '../scenario/load.js'
import { type Scenario, type SiteName } from '../scenario/schema.js'
import { classNames } from '../truth/format.js'
import { Observer } from '../truth/observer.js'
import { frameCountOf } from '../world/clock.js'
import { faultsAt } from '../world/faults.js'
import { Random } from '../world/random.js'
import { SimWorld } from '../world/world.js'
import { yoloLabels } from './labels.js'
import { type Subject, randomScene } from './random-scene.js'

export interface DatasetOptions {
  readonly folder: string
  /** Pictures in all; 15 in 100 are the valid split. */
  readonly count: number
  readonly widthPx: number
  readonly seed: number
  /** Sites of the training pictures. */
  readonly sites: readonly SiteName[]
  /** Of the training pictures; the valid split is always the same. */
  readonly subject: Subject
  readonly onPicture: (this: void, done: number, total: number) => void
}

const framesPerScene = 3
const validShare = 0.15

interface Shots {
  readonly split: 'train' | 'valid'
  readonly scenario: Scenario
  readonly frames: readonly number[]
}

/**
 * Writes `train/` and `valid/`, each with `images/` (JPEG) and `labels/` (YOLO text), and `data.yaml`. Training
 * pictures show random scenes only; the valid split shows the scenarios marked `heldOut`. No scenario of the library is
 * ever trained on. Pictures that are there already are left alone, so a cut-off run goes on where it was.
 * @throws DatasetError if the folder was begun with other options
 */
export async function writeDataset(options: DatasetOptions): Promise<void> {
  const { folder, count, widthPx, seed, sites, subject, onPicture } = options
  await begin(options)
  const shots = await shotsFor(count, (index) => randomScene(seed, index, { sites, subject }))
  const missing = shots
    .map((shot) => ({
      ...shot,
      frames: shot.frames.filter((frame) => !existsSync(labelPath(folder, shot, frame))),
    }))
    .filter(({ frames }) => frames.length > 0)
  if (missing.length === 0) return
  let done = pictureCount(shots) - pictureCount(missing)
  const heightPx = Math.round((widthPx * 9) / 16)
  await using browser = await RenderBrowser.open()
  for (const shot of missing) {
    const { scenario, frames } = shot
    const observer = new Observer(new SimWorld(scenario))
    await drawPictures(
      browser,
      scenario,
      { frames, widthPx, heightPx, bakePasses: 5 },
      async (frame, rgba) => {
        const random = new Random('jpeg', nameOf(scenario, frame), seed)
        await sharp(rgba, { raw: { width: widthPx, height: heightPx, channels: 4 } })
          .removeAlpha()
          .jpeg({ quality: 70 + random.int(24) })
          .toFile(join(folder, shot.split, 'images', `${nameOf(scenario, frame)}.jpg`))
        await writeFile(labelPath(folder, shot, frame), yoloLabels(observer.observe(frame)))
        onPicture(++done, count)
      },
    )
  }
}

/** The folders and `data.yaml`, whose last line tells the options: pictures of others must not mix with these. */
async function begin({ folder, count, widthPx, seed, sites, subject }: DatasetOptions): Promise<void> {
  const path = join(folder, 'data.yaml')
  const options = `--seed ${seed} --count ${count} --width ${widthPx} --sites ${sites.join(' ')} --subject ${subject}`
  const text = `train: train/images\nval: valid/images\nnc: ${classNames.length}\nnames: [${classNames.join(', ')}]\n# ${options}\n`
  const found = existsSync(path) ? await readFile(path, 'utf8') : text
  if (found !== text)
    throw new DatasetError(
      `${folder} was begun with other options than ${options}; the last line of its data.yaml: ${found.trimEnd().split('\n').at(-1)}`,
    )
  for (const split of ['train', 'valid'])
    for (const kind of ['images', 'labels']) await mkdir(join(folder, split, kind), { recursive: true })
  await writeFile(path, text)
}

function nameOf({ name }: Scenario, frame: number): string {
  return `${name}-${String(frame).padStart(4, '0')}`
}

/** A label is written after its picture: where it is, both are. */
function labelPath(folder: string, { split, scenario }: Shots, frame: number): string {
  return join(folder, split, 'labels', `${nameOf(scenario, frame)}.txt`)
}

function pictureCount(shots: readonly Shots[]): number {
  return shots.reduce((sum, { frames }) => sum + frames.length, 0)
}

async function shotsFor(count: number, sceneAt: (index: number) => Scenario): Promise<Shots[]> {
  const heldOut = (await Promise.all((await scenarioNames()).map(loadScenario))).filter(
    (scenario) => scenario.heldOut,
  )
  const validCount = Math.round(count * validShare)
  const valid = heldOut.map((scenario, index): Shots => {
    const share = Math.floor(validCount / heldOut.length) + (index < validCount % heldOut.length ? 1 : 0)
    return { split: 'valid', scenario, frames: spread(usable(scenario), share) }
  })
  const taken = pictureCount(valid)
  const train: Shots[] = []
  for (let index = 0, left = count - taken; left > 0; index++, left -= framesPerScene) {
    const scenario = sceneAt(index)
    train.push({ split: 'train', scenario, frames: spread(usable(scenario), Math.min(framesPerScene, left)) })
  }
  return [...valid, ...train]
}

/** Frames whose picture shows what their truth says. */
function usable(scenario: Scenario): number[] {
  const misleading = ['frozen', 'black', 'covered', 'moved']
  return Array.from({ length: frameCountOf(scenario.durationS) }, (_, frame) => frame).filter(
    (frame) => !faultsAt(scenario, frame).some(({ kind }) => misleading.includes(kind)),
  )
}

function spread(frames: readonly number[], count: number): number[] {
  const picked = Array.from(
    { length: count },
    (_, i) => frames[Math.floor(((i + 0.5) * frames.length) / count)],
  )
  return [...new Set(picked.filter((frame) => frame !== undefined))]
}
