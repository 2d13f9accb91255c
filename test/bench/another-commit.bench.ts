/**
 * This commit against the build of another one, in turn in one run: old, new, new, old.
 *
 *     npm run build:server && npx tsx test/bench/another-commit.bench.ts CHECKOUT "QUESTION" [pairs] [seconds]
 *
 * - `frame-path`: a frame from the scheduler to the boxes, through a thread and a model of 64 x 64 that does next to nothing.
 * - `throughput`: the same with `ppe` of models/.
 * - `service`: the whole service at 4 cameras of 5 frames/s by RTSP, its decoders and all processes; the cameras of the one that does
 *   not have its turn are switched off.
 * - `results-0`, `results-5`, `results-50`: what a result of so many boxes costs the service from the engine to a viewer: 4 cameras show
 *   the same still 120 times a second, which is analysed once in a minute. `frames` are results.
 * - `http`, `grpc`: a client of the model server that asks for a run of microseconds, 1 KB each way; `frames` are its requests, by the
 *   median of what one took. `tail` is the p99 of what one took over that median.
 * - `json picture`, `json floats`, `grpc picture`: the same with 184,320 numbers in a request, as JSON or as bytes.
 *
 * `cpu` is CPU per frame, `frames` frames in the same time: medians of the ratios new over old, with the interval that holds the true
 * median with 95 %. The checkout is built (`npm run build:server`), and runs on the models of this one.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { WebSocket } from 'ws'
import { treeThreadCpuMs } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { freePort } from '../support/free-port.js'
import { addModel, detectorOnnx, namesMetadata, redDetector } from '../support/onnx-models.js'
import { until } from '../support/until.js'
import { medianOf, quantile, report } from './bench.js'
import { tinyInputs, tinyRepository } from './tiny-model.js'

const [checkout = '', question = 'frame-path', pairsText = '15', secondsText = '20'] = process.argv.slice(2)
const pairs = Number(pairsText)
const roundMs = Number(secondsText) * 1_000
const isOfRequests = /^(?:http|json|grpc)(?: (?:kilobyte|picture|floats))?$/.test(question)
const here = fileURLToPath(new URL('../..', import.meta.url))
const models = join(here, 'models')
/** Until the code around a frame is compiled, which takes V8 some thousand calls. */
const warmUpMs = question === 'service' ? 60_000 : 20_000
/** Of a result whose way is asked for; `NaN` for another question. */
const boxes = Number(/^results-(\d+)$/.exec(question)?.[1])
/** After cameras are on, until decoders are at their rate. */
const settleMs = 4_000
const [cameras, fps] = [4, 5]

type Round = Readonly<{ frames: number; cpuMs: number; ms: number; tail?: number }>
/** What is measured, at rest between its rounds. */
type Side = Readonly<{ round: (forMs: number) => Promise<Round>; stop: () => Promise<void> }>

async function detectorOf(
  root: string,
  repository: string,
  ensemble: string,
  instances: number,
): Promise<Side> {
  const script = fileURLToPath(new URL('./detector-child.mjs', import.meta.url))
  const args = [script, join(root, 'dist'), repository, ensemble, String(instances)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async () => {
    const next = await lines.next()
    if (next.done) throw new Error(`the detector of ${root} ended`)
    return next.value
  }
  await line()
  return {
    round: async (forMs) => {
      child.stdin.write(`${forMs}\n`)
      return JSON.parse(await line()) as Round
    },
    stop: async () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}

const sum = (total: number, each: number) => total + each

type Running = Readonly<{
  httpPort: number
  metricsPort: number
  grpcPort: number
  /** CPU of all its processes so far. */
  cpuMs: () => number
  stop: Side['stop']
}>

async function started(
  root: string,
  folder: string,
  more: Readonly<Record<string, unknown>>,
): Promise<Running> {
  const [httpPort, metricsPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
  const file = join(folder, `${httpPort}.json`)
  const pipeline = {
    apiVersion: 'gantry/v1',
    name: 'bench',
    server: { httpPort, metricsPort, grpcPort },
    log: { level: 'error' },
    store: { path: join(folder, `${httpPort}.store.json`) },
    ...more,
  }
  await writeFile(file, JSON.stringify(pipeline))
  const child: ChildProcess = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'serve', '-c', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const isOk = (path: string) =>
    fetch(`http://127.0.0.1:${httpPort}${path}`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until('the service', () => isOk('/readyz'), 60_000)
  await until('the model server', () => isOk('/v2/health/ready'), 60_000)
  return {
    httpPort,
    metricsPort,
    grpcPort,
    cpuMs: () => treeThreadCpuMs(child.pid!),
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** One client that asks for a run of a model of microseconds, again as soon as it is answered. Frames are its requests. */
async function requestsOf(root: string, folder: string, repository: string): Promise<Side> {
  const [protocol = '', input = 'kilobyte'] = question.split(' ')
  const tiny = { repository, control: 'explicit', load: ['tiny'] }
  const running = await started(root, folder, { engines: 0, models: tiny, modelServer: { nice: 0 } })
  const script = fileURLToPath(new URL('./infer-clients.mjs', import.meta.url))
  const port = protocol === 'grpc' ? running.grpcPort : running.httpPort
  return {
    stop: running.stop,
    round: async (forMs) => {
      const args = [script, protocol, `127.0.0.1:${port}`, String(forMs / 1_000), input]
      const before = running.cpuMs()
      const { stdout } = await promisify(execFile)(process.execPath, args)
      const { n, p50, p99 } = JSON.parse(stdout) as { n: number; p50: number; p99: number }
      // Its warm-up, a third as long, is in the CPU as well.
      return { frames: n, cpuMs: (running.cpuMs() - before) * 0.75, ms: (n * p50) / 1e3, tail: p99 / p50 }
    },
  }
}

/** @param state - how the frames end that are counted. */
async function serviceOf(
  root: string,
  folder: string,
  settings: readonly object[],
  more: Readonly<Record<string, unknown>> = { models: { repository: models } },
  state: 'inferred' | 'reused' = 'inferred',
): Promise<Side & Pick<Running, 'httpPort'>> {
  const disabled = settings.map((camera) => ({ ...camera, enabled: false }))
  const running = await started(root, folder, { ...more, cameras: disabled })
  const { httpPort, metricsPort } = running
  const url = `http://127.0.0.1:${httpPort}`
  const counted = async () => {
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    const counts = page.matchAll(new RegExp(`^gantry_frames_total\\{.*state="${state}".*\\} (\\d+)$`, 'gm'))
    return [...counts].map(([, count]) => Number(count)).reduce(sum, 0)
  }
  const switchCameras = async (enabled: boolean) => {
    const headers = { 'content-type': 'application/json' }
    for (let index = 1; index <= cameras; index += 1) {
      const body = JSON.stringify({ enabled })
      const answer = await fetch(`${url}/api/v1/cameras/cam-${index}`, { method: 'PATCH', headers, body })
      if (!answer.ok) throw new Error(await answer.text())
    }
    await pause(settleMs)
  }
  return {
    httpPort,
    round: async (forMs) => {
      await switchCameras(true)
      const before = { frames: await counted(), cpuMs: running.cpuMs(), atMs: performance.now() }
      await pause(forMs)
      const cpuMs = running.cpuMs() - before.cpuMs
      const ms = performance.now() - before.atMs
      const frames = (await counted()) - before.frames
      await switchCameras(false)
      return { frames, cpuMs, ms }
    },
    stop: running.stop,
  }
}

/** The way of results whose frames cost nearly nothing, with a viewer at its end. */
async function resultsOf(root: string, folder: string): Promise<Side> {
  const stills = join(folder, 'stills')
  await mkdir(stills, { recursive: true })
  const still = sharp({ create: { width: 64, height: 64, channels: 3, background: 'gray' } })
  await still.png().toFile(join(stills, 'still.png'))
  const repository = join(folder, 'models')
  addModel(repository, 'boxes', { onnx: boxesOnnx() })
  const settings = Array.from({ length: cameras }, (_, index) => ({
    id: `cam-${index + 1}`,
    url: stills,
    sampleFps: 120,
    staticScene: { maxAgeMs: 60_000 },
  }))
  const more = { models: { repository }, ensemble: 'boxes', mediaRoot: folder }
  const side = await serviceOf(root, folder, settings, more, 'reused')
  const viewer = new WebSocket(`ws://127.0.0.1:${side.httpPort}/api/v1/stream`, 'gantry.v1')
  await once(viewer, 'open')
  viewer.on('message', () => undefined)
  viewer.send('{"type":"subscribe"}')
  return {
    round: side.round,
    stop: async () => {
      viewer.terminate()
      await side.stop()
    },
  }
}

/** Boxes of 4 x 4 pixels, none over another, whatever is seen. */
function boxesOnnx(): Uint8Array {
  const anchors = 84
  const each = Array.from({ length: boxes }, (_, at) => [
    [at, 4 + 8 * (at % 8)],
    [anchors + at, 4 + 8 * Math.floor(at / 8)],
    [2 * anchors + at, 4],
    [3 * anchors + at, 4],
    [5 * anchors + at, 0.9],
  ])
  const fixed = Object.fromEntries(each.flat()) as Record<number, number>
  const size = { widthPx: 64, heightPx: 64, rows: 6, columns: anchors }
  return detectorOnnx({ input: 'uint8-nhwc', ...size, fixed, metadata: namesMetadata(['blue', 'red']) })
}

async function sides(folder: string): Promise<readonly [Side, Side, () => Promise<void>]> {
  const old = resolve(checkout)
  if (question === 'service') {
    const rtsp = await rtspCameras(cameras)
    const settings = cameraSettings(rtsp, cameras, fps)
    return [
      await serviceOf(old, folder, settings),
      await serviceOf(here, folder, settings),
      () => rtsp.stop(),
    ]
  }
  if (boxes >= 0)
    return [await resultsOf(old, folder), await resultsOf(here, folder), () => Promise.resolve()]
  if (isOfRequests) {
    const { dir } = tinyRepository(tinyInputs.find((input) => question.endsWith(input)))
    const end = () => rm(dir, { recursive: true, force: true })
    return [await requestsOf(old, folder, dir), await requestsOf(here, folder, dir), end]
  }
  const isTiny = question === 'frame-path'
  if (isTiny) addModel(folder, 'red', { onnx: redDetector('uint8-nhwc') })
  const of = (root: string) => detectorOf(root, isTiny ? folder : models, isTiny ? 'red' : 'ppe', 2)
  return [await of(old), await of(here), () => Promise.resolve()]
}

if (
  checkout === '' ||
  !(isOfRequests || ['frame-path', 'throughput', 'service'].includes(question) || boxes >= 0)
)
  throw new Error(
    'usage: another-commit.bench.ts CHECKOUT frame-path|throughput|service|results-N|"http|json|grpc [picture|floats]" [pairs] [seconds]',
  )
const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'))
const [before, after, end] = await sides(folder)
try {
  for (const side of [before, after]) await side.round(warmUpMs)
  const cpu: number[] = []
  const frames: number[] = []
  const tails = { old: [] as number[], now: [] as number[] }
  for (let pair = 0; pair < pairs; pair += 1) {
    const order = pair % 2 === 0 ? [before, after] : [after, before]
    const rounds = [await order[0]!.round(roundMs), await order[1]!.round(roundMs)]
    const [old, now] = pair % 2 === 0 ? rounds : rounds.reverse()
    cpu.push(now!.cpuMs / now!.frames / (old!.cpuMs / old!.frames))
    frames.push(now!.frames / now!.ms / (old!.frames / old!.ms))
    if (old!.tail !== undefined) tails.old.push(old!.tail)
    if (now!.tail !== undefined) tails.now.push(now!.tail)
  }
  const [ofCpu, ofFrames] = [medianOf(cpu), medianOf(frames)]
  report(`another-commit, ${question}`, 'ratio', {
    cpu: ofCpu.median,
    cpuInterval: ofCpu.interval,
    frames: ofFrames.median,
    framesInterval: ofFrames.interval,
    ...(tails.now.length > 0 && { tail: quantile(tails.now, 0.5), tailBefore: quantile(tails.old, 0.5) }),
    pairs,
    seconds: roundMs / 1_000,
  })
} finally {
  await before.stop()
  await after.stop()
  await end()
  await rm(folder, { recursive: true, force: true })
}
