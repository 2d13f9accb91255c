/**
 * Saturated frames per second and CPU time per frame of the camera detector, against bare ONNX Runtime sessions with the same
 * instances and threads on as many different frames, in alternating rounds of one run. Prints one JSON line per model.
 *
 *   npm run build:server && npx tsx test/bench/inference-throughput.bench.ts [REPOSITORY] [MODEL...]
 */
import { once } from 'node:events'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { inferenceSchema } from '../../src/config/inference.js'
import type { CameraDetector } from '../../src/detector/camera-detector.js'
import { cameraDetectorOf } from '../support/camera-detector-of.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { planDetector } from '../../src/detector/detector-plan.js'
import type { Frame } from '../../src/vision/frame.js'
import { FramePool } from '../../src/vision/frame-pool.js'
import { createLog } from '../../src/lifecycle/log.js'

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

/** Workers that do nothing but run the model. */
class BareSessions {
  private constructor(readonly workers: readonly Worker[]) {}

  static async start(repositoryDir: string, name: string): Promise<BareSessions> {
    const detector = cameraDetectorOf(repositoryDir, name)
    const { input, head } = planDetector(detector)
    const { widthPx, heightPx } = input.size
    const nhwc = input.layout === 'uint8-nhwc'
    const workerData = {
      path: detector.path,
      input: input.name,
      shape: nhwc ? [1, heightPx, widthPx, 3] : [1, 3, heightPx, widthPx],
      type: input.layout === 'float32-nchw' ? 'float32' : 'uint8',
      output: head.output,
      frames: cameras,
    }
    const entry = fileURLToPath(new URL('./bare-session-worker.mjs', import.meta.url))
    const workers = Array.from({ length: instances }, () => new Worker(entry, { workerData }))
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    return new BareSessions(workers)
  }

  async run(): Promise<number> {
    const answers = this.workers.map((worker) => once(worker, 'message') as Promise<[{ runs: number }]>)
    for (const worker of this.workers) worker.postMessage({ type: 'run', forMs: roundMs })
    return (await Promise.all(answers)).reduce((sum, [{ runs }]) => sum + runs, 0)
  }

  async stop(): Promise<void> {
    const ended = this.workers.map((worker) => once(worker, 'exit'))
    for (const worker of this.workers) worker.postMessage({ type: 'stop' })
    await Promise.all(ended)
  }
}

/** Cameras that offer a new frame as soon as their last one has ended: there is always a frame waiting. */
class SaturatedDetector {
  #ended = 0
  #saturating = false
  #inFlight = 0
  #drained: () => void = () => undefined

  private constructor(
    readonly detector: CameraDetector,
    readonly pool: FramePool,
  ) {}

  static async start(repositoryDir: string, name: string): Promise<SaturatedDetector> {
    // Names made before the detector exists, as its listener needs them.
    let ended: (frame: Frame, inferred: boolean) => void = () => undefined
    const detector = await createCameraDetector({
      repositories: repositoryDir,
      ensemble: name,
      inference: inferenceSchema.parse({ providers: ['cpu'], instances }),
      log: createLog({ level: 'warn', format: 'json' }, 'bench'),
      listener: {
        detected: (frame) => ended(frame, true),
        superseded: (frame) => ended(frame, false),
        shed: (frame) => ended(frame, false),
        hung: (error) => {
          throw error as Error
        },
        instanceExited: (error) => {
          throw error
        },
      },
    })
    const { widthPx, heightPx } = detector.info.format.input
    const pool = new FramePool(widthPx * heightPx * 3, cameras)
    const buffers = Array.from({ length: cameras }, () => pool.take())
    for (const buffer of buffers) {
      new Uint8Array(buffer).fill(114)
      pool.give(buffer)
    }
    const bench = new SaturatedDetector(detector, pool)
    ended = (frame, inferred) => bench.#frameEnded(frame, inferred)
    return bench
  }

  /** Begins with all instances busy; the frames on their way at the end are left to `drain`. */
  async run(forMs: number): Promise<number> {
    this.#ended = 0
    this.#saturating = true
    for (let camera = 0; camera < cameras; camera++) this.#offer(`cam-${camera}`, 1)
    await new Promise((resolve) => setTimeout(resolve, forMs))
    return this.#ended
  }

  async drain(): Promise<void> {
    this.#saturating = false
    await new Promise<void>((resolve) => (this.#drained = resolve))
  }

  #offer(cameraId: string, seq: number): void {
    const size = this.detector.info.format.input
    this.#inFlight += 1
    this.detector.offer({
      cameraId,
      seq,
      capturedAtMs: Date.now(),
      arrivedMs: 0,
      ptsMs: 0,
      quality: 'ok',
      source: size,
      regionPx: { x: 0, y: 0, ...size },
      letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
      rgbHwc: this.pool.take(),
    })
  }

  #frameEnded({ cameraId, seq, rgbHwc }: Frame, inferred: boolean): void {
    this.pool.give(rgbHwc)
    this.#inFlight -= 1
    if (inferred) this.#ended += 1
    if (this.#saturating) this.#offer(cameraId, seq + 1)
    else if (this.#inFlight === 0) this.#drained()
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

async function compare(repositoryDir: string, name: string): Promise<object> {
  const bare = await BareSessions.start(repositoryDir, name)
  const ours = await SaturatedDetector.start(repositoryDir, name)
  const pairs: { bare: Round; ours: Round }[] = []
  await ours.run(warmUpMs)
  await ours.drain()
  for (let round = 0; round <= rounds; round++) {
    const pair = { bare: await measured(() => bare.run()), ours: await measured(() => ours.run(roundMs)) }
    await ours.drain()
    if (round > 0) pairs.push(pair)
  }
  await bare.stop()
  await ours.detector.stop(5_000)
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
