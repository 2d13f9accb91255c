/**
 * Saturated frames per second and CPU time per frame of the camera detector, against bare ONNX Runtime sessions with the same
 * instances and threads on as many different frames, in alternating rounds of one run. Prints one JSON line per model.
 *
 *   npm run build:server && npx tsx test/bench/inference-throughput.bench.ts [REPOSITORY] [MODEL...]
 */
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { BareSessions } from './bare-workers.js'
import { SaturatedDetector } from './saturated-detector.js'

const roundMs = 4_000
const rounds = 9
/** V8 compiles the code around a run only after some thousand runs; until then it costs twice as much. */
const warmUpMs = 40_000
const cameras = 8
const instances = availableParallelism()

type Round = Readonly<{ fps: number; cpuMsPerFrame: number }>

/** @param run - resolves with the frames that ended while it ran. */
async function measured(run: () => Promise<number>): Promise<Round> {
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  const frames = await run()
  const seconds = (performance.now() - beganMs) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { fps: frames / seconds, cpuMsPerFrame: (user + system) / 1_000 / frames }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

async function compare(repositoryDir: string, name: string): Promise<object> {
  const bare = await BareSessions.start(repositoryDir, name, { sessions: instances, feeds: cameras })
  const ours = await SaturatedDetector.start({
    repository: repositoryDir,
    ensemble: name,
    inference: { providers: ['cpu'], instances },
    cameras,
  })
  const pairs: { bare: Round; ours: Round }[] = []
  await ours.run(warmUpMs)
  await ours.drain()
  for (let round = 0; round <= rounds; round++) {
    const pair = {
      bare: await measured(async () => (await bare.run(roundMs)).frames),
      ours: await measured(() => ours.run(roundMs)),
    }
    await ours.drain()
    if (round > 0) pairs.push(pair)
  }
  await bare.stop()
  await ours.stop()
  const of = (pick: (pair: { bare: Round; ours: Round }) => number) =>
    Number(median(pairs.map(pick)).toFixed(3))
  return {
    name: 'inference-throughput',
    model: name,
    unit: 'frames/s',
    instances,
    rounds,
    bareFps: of((pair) => pair.bare.fps),
    detectorFps: of((pair) => pair.ours.fps),
    throughputRatio: of((pair) => pair.ours.fps / pair.bare.fps),
    bareCpuMsPerFrame: of((pair) => pair.bare.cpuMsPerFrame),
    detectorCpuMsPerFrame: of((pair) => pair.ours.cpuMsPerFrame),
    cpuRatio: of((pair) => pair.ours.cpuMsPerFrame / pair.bare.cpuMsPerFrame),
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, node ${process.version}`,
  }
}

const [repositoryDir = fileURLToPath(new URL('../../models', import.meta.url)), ...names] =
  process.argv.slice(2)
for (const name of names.length > 0 ? names : ['ppe', 'ppe_detect_int8'])
  process.stdout.write(`${JSON.stringify(await compare(repositoryDir, name))}\n`)
