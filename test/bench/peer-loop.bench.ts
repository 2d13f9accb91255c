/**
 * Beside what users would write instead: a Python loop of OpenCV and ONNX Runtime (peer-loop/loop.py), on the same cameras, detector and
 * cores, in turn in one run.
 *
 *     npm run build:server && npx tsx test/bench/peer-loop.bench.ts QUESTION MODEL [pairs] [seconds] [camera settings as JSON]
 *
 * - `equal`: a load that both sustain: `ppe` (the shipped detector) at 6 cameras of 5 frames/s, `tiny` (next to no work) at 8. CPU per
 *   analysed frame, time from the last packet sent to the result in another process, memory.
 * - `saturated`: 4 cameras of 25 frames/s, more than the cores can do: results per second, and how late they are.
 * - `held`: cameras of 5 frames/s that each side holds: at least 95 % of the results, p99 at most 500 ms.
 *
 * CPU is that of all processes of a side, its decoders included. Ratios are Gantry over the loop, medians with the interval that holds
 * the true median with 95 %. Where there is no Python or no registry, it says so and ends.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { treeCpuSeconds } from '../support/cpu.js'
import { treeBytes } from '../support/memory.js'
import { medianOf, quantile, report } from './bench.js'
import { peerPython } from './peer-python.js'
import {
  GantrySide,
  LoopSide,
  models,
  numberedClips,
  numberedModels,
  NumberedCameras,
  type ModelName,
  type Side,
} from './peer-loop/sides.js'

const [question = '', model = 'ppe', pairsText = '15', secondsText = '12', settings = '{}'] =
  process.argv.slice(2)
const pairs = Number(pairsText)
const seconds = Number(secondsText)
/** After a side has a result of each camera. */
const settleMs = 5_000
/** Until the code around a frame is compiled, which takes V8 some thousand calls. */
const warmUpMs = 40_000
/** What a side must do to hold its cameras. */
const held = { share: 0.95, p99Ms: 500 }
const loads = { equal: { ppe: [6, 5], tiny: [8, 5] }, saturated: { ppe: [4, 25], tiny: [16, 25] } } as const

type Round = Readonly<{
  results: number
  /** Of the results that were asked for. */
  share: number
  cpuMs: number
  p50Ms: number
  p99Ms: number
  megabytes: number
  boxes: number
  unread: number
}>

function isQuestion(text: string): text is 'equal' | 'saturated' | 'held' {
  return text === 'equal' || text === 'saturated' || text === 'held'
}

async function roundOf(side: Side, cameras: NumberedCameras, fps: number): Promise<Round> {
  await side.on()
  await pause(settleMs)
  const from = side.results.length
  const before = { cpu: treeCpuSeconds(side.pid), atMs: performance.now() }
  await pause(seconds * 1_000)
  const tookS = (performance.now() - before.atMs) / 1e3
  const cpu = treeCpuSeconds(side.pid) - before.cpu
  const results = side.results.slice(from)
  const megabytes = treeBytes(side.pid) / 1e6
  // The log of the cameras is written five times a second.
  await pause(400)
  await side.off()
  const sent = await cameras.sent()
  const lateMs = results.flatMap(({ camera, picture, atMs }) => {
    const last = sent.get(`${camera} ${picture}`)?.findLast((sentMs) => sentMs <= atMs + 2)
    return last === undefined ? [] : [atMs - last]
  })
  return {
    results: results.length / tookS,
    share: results.length / (cameras.urls.length * fps * tookS),
    cpuMs: (cpu * 1e3) / results.length,
    p50Ms: quantile(lateMs, 0.5),
    p99Ms: quantile(lateMs, 0.99),
    megabytes,
    boxes: results.reduce((sum, { boxes }) => sum + boxes, 0) / results.length,
    unread: results.length - lateMs.length,
  }
}

/** Rounds of both sides in turn, the first of a pair in turn as well; Gantry's and the loop's. */
async function inTurn(sides: readonly [Side, Side], cameras: NumberedCameras, fps: number) {
  const all: [Round, Round][] = []
  for (let pair = 0; pair < pairs; pair += 1) {
    const order = pair % 2 === 0 ? sides : [sides[1], sides[0]]
    const rounds: Round[] = []
    for (const side of order) rounds.push(await roundOf(side, cameras, fps))
    all.push((pair % 2 === 0 ? rounds : rounds.reverse()) as [Round, Round])
  }
  return all
}

function reportPairs(
  name: string,
  all: readonly [Round, Round][],
  of: Readonly<Record<string, number>>,
): void {
  for (const [at, side] of ['gantry', 'loop'].entries()) {
    const figure = (key: keyof Round) =>
      quantile(
        all.map((rounds) => rounds[at]![key]),
        0.5,
      )
    const keys = ['results', 'share', 'cpuMs', 'p50Ms', 'p99Ms', 'megabytes', 'boxes', 'unread'] as const
    report(`${name}, ${side}`, 'medians', Object.fromEntries(keys.map((key) => [key, figure(key)])))
  }
  const ratio = (key: keyof Round) => medianOf(all.map(([gantry, loop]) => gantry[key] / loop[key]))
  const [cpu, results] = [ratio('cpuMs'), ratio('results')]
  report(name, 'ratio', {
    cpu: cpu.median,
    cpuInterval: cpu.interval,
    results: results.median,
    resultsInterval: results.interval,
    p50: ratio('p50Ms').median,
    p99: ratio('p99Ms').median,
    p99Interval: ratio('p99Ms').interval,
    memory: ratio('megabytes').median,
    pairs,
    seconds,
    ...of,
  })
}

type Start = (urls: readonly string[], fps: number) => Promise<readonly [GantrySide, LoopSide]>

async function pairsOf(load: 'equal' | 'saturated', clips: readonly string[], start: Start): Promise<void> {
  const [count, fps] = loads[load][model as ModelName]
  const cameras = await NumberedCameras.start(folder, clips, count)
  const sides = await start(cameras.urls, fps)
  try {
    await sides[0].on()
    await pause(warmUpMs)
    await sides[0].off()
    const all = await inTurn(sides, cameras, fps)
    reportPairs(`peer-loop, ${load}, ${model}`, all, { cameras: count, fps })
  } finally {
    for (const side of sides) await side.stop()
    await cameras.stop()
  }
}

/** Each side by steps up until it fails a level; where it fails the first one, by steps down until it holds one. */
async function camerasHeld(clips: readonly string[], start: Start): Promise<void> {
  const fps = 5
  const [from, step] = model === 'ppe' ? [10, 1] : [32, 4]
  const most: Record<string, number> = {}
  const failed = new Set<string>()
  const level = async (count: number, isToTry: (name: string) => boolean): Promise<void> => {
    const cameras = await NumberedCameras.start(folder, clips, count)
    const sides = await start(cameras.urls, fps)
    try {
      for (const side of sides) {
        if (!isToTry(side.name)) continue
        if (side instanceof GantrySide) {
          await side.on()
          await pause(warmUpMs / 2)
          await side.off()
        }
        const round = await roundOf(side, cameras, fps)
        report(`peer-loop, level, ${model}, ${side.name}`, 'level', { cameras: count, ...round })
        if (round.share >= held.share && round.p99Ms <= held.p99Ms) most[side.name] = count
        else failed.add(side.name)
      }
    } finally {
      for (const side of sides) await side.stop()
      await cameras.stop()
    }
  }
  for (let count = from; failed.size < 2; count += step) await level(count, (name) => !failed.has(name))
  const holdsNone = (name: string): boolean => most[name] === undefined
  for (let count = from - step; count > 0 && [...failed].some(holdsNone); count -= step)
    await level(count, holdsNone)
  report(`peer-loop, held, ${model}`, 'cameras', { ...most, fps, seconds })
}

if (!isQuestion(question) || !(model in models))
  throw new Error(
    'usage: peer-loop.bench.ts equal|saturated|held ppe|tiny [pairs] [seconds] [camera settings as JSON]',
  )
const python = await peerPython('peer-loop')
if (python === undefined) process.exit(0)
const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'))
try {
  const clips = await numberedClips(folder)
  const repository = await numberedModels(python, folder)
  const camera = JSON.parse(settings) as Record<string, unknown>
  const start: Start = async (urls, fps) => [
    await GantrySide.start(repository, model as ModelName, urls, fps, camera),
    new LoopSide(python, repository, model as ModelName, urls, fps),
  ]
  await (question === 'held' ? camerasHeld(clips, start) : pairsOf(question, clips, start))
} finally {
  await rm(folder, { recursive: true, force: true })
}
