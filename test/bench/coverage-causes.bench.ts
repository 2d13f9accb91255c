// How often the picture checks say rightly why nobody could see a scene, and what a frame costs.
//   npx tsx test/bench/coverage-causes.bench.ts [--json] [--faults NAME,...] [--swung] [SOURCE ...]
// SOURCE: a clip, a photograph, a scenario of the simulator, or one with a fault of its own (`night-yard+covered`). Without: the clips of the
// demo and every scenario. Scenarios are drawn once into --folder, some minutes each without a graphics card.
// A source without faults is played for 60 s for each fault that ffmpeg makes, from 25 s to 45 s; one with faults as it is.
// --swung: of cameras that are turned all the time, which have no scene: what is told beside one need not be told.
import { tmpdir } from 'node:os'
import { basename, extname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { scenarioNames } from '../../sim/index.js'
import { RenderBrowser } from '../../sim/render/browser.js'
import {
  asTheyAre,
  causesOf,
  expectedOf,
  rawFrames,
  scoreOf,
  sumOfScores,
  worsened,
  type CoverageScore,
} from '../support/coverage-clips.js'
import { coverageFaults, unseenFaults } from '../support/coverage-faults.js'
import {
  coverageScenario,
  expectedOfScenario,
  isFrozenAt,
  scenarioClip,
} from '../support/coverage-scenarios.js'

const { values, positionals } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    faults: { type: 'string' },
    swung: { type: 'boolean', default: false },
    folder: { type: 'string', default: join(tmpdir(), 'gantry-coverage-clips') },
  },
  allowPositionals: true,
})
const demo = ['dock', 'gate', 'press-line', 'yard'].map((name) =>
  join(import.meta.dirname, `../../pipelines/demo/clips/${name}.mp4`),
)
const sources =
  positionals.length > 0
    ? positionals
    : [...demo, ...(await scenarioNames()).filter((name) => !name.startsWith('demo-'))]
const wanted = values.faults?.split(',')
const faults = Object.entries(coverageFaults).filter(
  ([name]) => wanted === undefined || wanted.includes(name),
)

type Row = Readonly<{ source: string; fault: string; score: CoverageScore }>
const rows: Row[] = []
let [frames, checkMs] = [0, 0]
let browser: RenderBrowser | undefined
const drawing = async () => (browser ??= await RenderBrowser.open())

for (const source of sources) {
  const isFile = extname(source) !== ''
  const scenario = isFile ? undefined : await coverageScenario(source)
  const path = scenario === undefined ? source : await scenarioClip(drawing, scenario, values.folder)
  const before = rows.length
  if (scenario !== undefined && scenario.faults.length > 0) {
    const played = await causesOf(asTheyAre(rawFrames(path, scenario.durationS), isFrozenAt(scenario)))
    told(source, 'its own', played, scoreOf(played.causes, expectedOfScenario(scenario)))
  } else {
    const clip = rawFrames(path)
    for (const [name, fault] of faults) {
      const played = await causesOf(worsened(clip, fault))
      const more = values.swung ? (fault.swung ?? []) : []
      const loose = { ...fault, expected: [...fault.expected, ...more] }
      told(source, name, played, scoreOf(played.causes, expectedOf(loose)))
    }
  }
  if (!values.json) print(basename(source), rows.slice(before))
}
await browser?.[Symbol.asyncDispose]()

function told(
  source: string,
  fault: string,
  played: Readonly<{ frames: number; checkMs: number }>,
  score: CoverageScore,
): void {
  frames += played.frames
  checkMs += played.checkMs
  rows.push({ source: basename(source), fault, score })
}

function print(title: string, some: readonly Row[]): void {
  const { right, wrong, sound, falseAlarms, mistakes } = sumOfScores(some.map(({ score }) => score))
  const share = right + wrong === 0 ? '     –' : `${((100 * right) / (right + wrong)).toFixed(1)} %`
  const what = Object.entries(mistakes)
    .sort(([, one], [, other]) => other - one)
    .map(([mistake, seconds]) => `${mistake} ${seconds}`)
  process.stdout.write(
    `${title.padEnd(34)} ${String(right + wrong + sound).padStart(6)} s  right ${share.padStart(7)}  false ${String(falseAlarms).padStart(4)} s  ${what.join(', ')}\n`,
  )
}

if (!values.json) {
  process.stdout.write('\n')
  for (const name of ['its own', ...faults.map(([fault]) => fault)]) {
    const own = rows.filter(({ fault }) => fault === name)
    if (own.length > 0) print(`${name}${unseenFaults.has(name) ? ' (unseen)' : ''}`, own)
  }
  process.stdout.write('\n')
}
const all = sumOfScores(rows.map(({ score }) => score))
const summary = {
  sources: sources.length,
  rightShare: all.right / (all.right + all.wrong),
  ...all,
  msPerSecond: (checkMs / frames) * 2,
}
if (!values.json) print('all', rows)
process.stdout.write(`${JSON.stringify(values.json ? { ...summary, rows } : summary)}\n`)
