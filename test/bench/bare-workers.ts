/** ONNX Runtime and nothing around it: sessions side by side, each in a thread that does nothing but run the model. */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { ExecutionProvider } from '../../src/config/inference.js'
import { planDetector } from '../../src/detector/detector-plan.js'
import { cameraDetectorOf } from '../support/camera-detector-of.js'
import { quantile } from './bench.js'

export type BareOptions = Readonly<{
  sessions: number
  /** Different inputs of each, in turn. */
  feeds: number
  /** Frames in each input. */
  batch?: number
  provider?: ExecutionProvider
  deviceId?: number
  /** Another way to run a model: a worker that is loaded, asked and answers as `bare-session-worker.mjs` is. */
  entry?: string
}>

/** Of a session: opening it, and its first run. */
export type BareStart = Readonly<{ loadMs: number; firstMs: number }>

export type BareRound = Readonly<{ frames: number; p50Ms: number }>

export class BareSessions {
  private constructor(
    readonly workers: readonly Worker[],
    readonly batch: number,
    readonly started: readonly BareStart[],
  ) {}

  /** @param name - of an ensemble or a detector of the repository. Resolves when all have run once. */
  static async start(
    repositoryDir: string,
    name: string,
    { sessions, feeds, batch = 1, provider = 'cpu', deviceId = 0, entry }: BareOptions,
  ): Promise<BareSessions> {
    const detector = cameraDetectorOf(repositoryDir, name)
    const { input, head } = planDetector(detector)
    const { widthPx, heightPx } = input.size
    const nhwc = input.layout === 'uint8-nhwc'
    const workerData = {
      path: detector.path,
      input: input.name,
      shape: nhwc ? [batch, heightPx, widthPx, 3] : [batch, 3, heightPx, widthPx],
      type: input.layout === 'float32-nchw' ? 'float32' : 'uint8',
      output: head.output,
      feeds,
      provider,
      deviceId,
    }
    const script = entry ?? fileURLToPath(new URL('./bare-session-worker.mjs', import.meta.url))
    const workers = Array.from({ length: sessions }, () => new Worker(script, { workerData }))
    const started = await Promise.all(workers.map((worker) => once(worker, 'message')))
    return new BareSessions(workers, batch, (started as [BareStart][]).flat())
  }

  /** All of them, one run after the other. */
  async run(forMs: number): Promise<BareRound> {
    const answers = this.workers.map((worker) => once(worker, 'message') as Promise<[{ runsMs: number[] }]>)
    for (const worker of this.workers) worker.postMessage({ type: 'run', forMs })
    const runsMs = (await Promise.all(answers)).flatMap(([answer]) => answer.runsMs)
    return { frames: runsMs.length * this.batch, p50Ms: quantile(runsMs, 0.5) }
  }

  async stop(): Promise<void> {
    const ended = this.workers.map((worker) => once(worker, 'exit'))
    for (const worker of this.workers) worker.postMessage({ type: 'stop' })
    await Promise.all(ended)
  }
}
