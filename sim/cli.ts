import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { writeDataset } from './dataset/dataset.js'
import { type Subject, subjects } from './dataset/random-scene.js'
import { RenderBrowser } from './render/browser.js'
import { encodeFrames, range, renderedClip } from './render/clip.js'
import { progressLine } from './render/progress.js'
import { loadScenario, scenarioNames } from './scenario/load.js'
import { siteNames, type SiteName } from './scenario/schema.js'
import { truthJson, truthOf } from './truth/truth.js'
import { frameCountOf } from './world/clock.js'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const program = new Command('sim').description(
  'Renders scenarios of work sites as video, with the exact truth of every frame.',
)

program
  .command('list')
  .description('the scenarios there are')
  .action(async () => {
    for (const name of await scenarioNames()) {
      const { title, site, lighting, durationS, heldOut } = await loadScenario(name)
      print(
        `${name.padEnd(26)} ${site.padEnd(11)} ${lighting.padEnd(6)} ${String(durationS).padStart(4)} s  ${title}${heldOut ? ' (held out)' : ''}`,
      )
    }
  })

program
  .command('truth <scenario>')
  .description('the truth as JSON, without rendering')
  .option('--out <file>', 'write here instead of standard output')
  .option('--stride <n>', 'list every n-th frame', wholeNumber, 1)
  .action(async (name: string, { out, stride }: { out?: string; stride: number }) => {
    const progress = progressLine('truth')
    const json = truthJson(
      truthOf(await loadScenario(name), { frameStride: stride, onFrame: progress.update }),
    )
    progress.end()
    if (out === undefined) process.stdout.write(json)
    else await written(out, json)
  })

program
  .command('render <scenario>')
  .description('video and truth; cached, so a second call is free')
  .option('--out <file>', 'write the video here, uncached')
  .option('--frames <a..b>', 'only frames a to b, b excluded; needs --out', frameRange)
  .action(async (name: string, { out, frames }: { out?: string; frames?: readonly [number, number] }) => {
    const scenario = await loadScenario(name)
    if (frames !== undefined && out === undefined) throw new InvalidArgumentError('--frames needs --out')
    const progress = progressLine('video')
    if (out === undefined) {
      const clip = await renderedClip(scenario, {
        onProgress: (stage, done, total) => {
          if (stage === 'video') progress.update(done, total)
        },
      })
      progress.end()
      print(clip.videoPath)
      print(clip.truthPath)
      return
    }
    const total = frameCountOf(scenario.durationS)
    const [from, to] = frames ?? [0, total]
    if (to > total) throw new InvalidArgumentError(`--frames ${from}..${to}: ${name} has frames 0..${total}`)
    await mkdir(dirname(out), { recursive: true })
    await using browser = await RenderBrowser.open()
    await encodeFrames(browser, scenario, range(from, to), out, (done) => progress.update(done, to - from))
    progress.end()
    print(out)
  })

program
  .command('dataset')
  .description('pictures with YOLO labels, for training a detector')
  .requiredOption('--out <folder>', 'where train/, valid/ and data.yaml go')
  .requiredOption('--count <n>', 'pictures in all', wholeNumber)
  .option('--width <px>', 'picture width; 16:9', wholeNumber, 640)
  .option('--seed <n>', 'of the random scenes', wholeNumber, 1)
  .addOption(
    new Option('--sites <name...>', 'of the random scenes').choices(siteNames).default([...siteNames]),
  )
  .addOption(
    new Option(
      '--subject <kind>',
      'of the random scenes: all that a site has, or helmets and caps of the same colours',
    )
      .choices(subjects)
      .default('site'),
  )
  .action(async ({ out, count, width, seed, sites, subject }: DatasetCommand) => {
    const progress = progressLine('dataset')
    await writeDataset({
      folder: out,
      count,
      widthPx: width,
      seed,
      sites,
      subject,
      onPicture: progress.update,
    })
    progress.end()
    print(out)
  })

type DatasetCommand = {
  out: string
  count: number
  width: number
  seed: number
  sites: SiteName[]
  subject: Subject
}

async function written(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
  print(path)
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('a whole number from 1 is needed')
  return value
}

function frameRange(text: string): readonly [number, number] {
  const match = /^(\d+)\.\.(\d+)$/.exec(text)
  const [from, to] = [Number(match?.[1]), Number(match?.[2])]
  if (match === null || to <= from) throw new InvalidArgumentError('frames are given as a..b with a < b')
  return [from, to]
}

try {
  await program.parseAsync()
} catch (error) {
  const hint = error instanceof Error && 'hint' in error ? `\n${String(error.hint)}` : ''
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}${hint}\n`)
  process.exitCode = 1
}
