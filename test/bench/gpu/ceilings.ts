/** What the card gives at most, and what the least effort makes of it. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DetectorBackend } from '../../../src/detector/detector-backend.js'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { cameraDetectorOf } from '../../support/camera-detector-of.js'
import { BareSessions } from '../bare-workers.js'
import { type Figures, quantile } from '../bench.js'
import { demoPictures } from '../clip-detector.js'
import { type Context, NotHere, type Tell, type Window, within } from './measure.js'
import { type CeilingJob, placesOf } from './plan.js'

/** Of all sessions together; more than caches hold. */
const fewestFrames = 16
/** Longest that the first runs, which plan, are waited for. */
const pythonWithinMs = 60_000
const notInstalled = 3

export async function measureCeiling(job: CeilingJob, context: Context, tell: Tell): Promise<void> {
  const windows: Window[] = []
  const figures = await { naive, bare, bound }[job.kind](job, context, windows)
  const [place] = placesOf(job)
  tell(place!, 'frames/s', figures, windows)
}

async function naive(job: CeilingJob, context: Context, windows: Window[]): Promise<Figures> {
  const detector = cameraDetectorOf(context.repository, job.model)
  const { input, head } = planDetector(detector)
  const backend = new DetectorBackend()
  const { loadMs, warmUpMs } = await backend.load({
    candidates: [
      {
        isFloat16: false,
        session: {
          path: detector.path,
          providers: [context.provider],
          deviceId: context.deviceId,
          intraOpThreads: 1,
          graphOptimization: 'all',
        },
        input,
        head,
        // The whole head is read, as whoever writes it first does.
        topRows: 0,
        warmUps: [],
        batched: true,
        maxBatchSize: { cpu: 1, gpu: 1 },
        batchSizes: [1],
      },
    ],
    scoreThreshold: 0.3,
    iouThreshold: 0.5,
    maxDetections: 300,
    measuresMemory: false,
  })
  const whole = { x: 0, y: 0, ...input.size }
  const geometry = { letterbox: { scale: 1, padXPx: 0, padYPx: 0 }, regionPx: whole, source: whole }
  const pictures = demoPictures({ input: input.size, align: input.align })
  let boxes = 0
  const runsMs: number[] = []
  const forMs = async (ms: number) => {
    const beganMs = performance.now()
    while (performance.now() - beganMs < ms) {
      const rgbHwc = pictures[runsMs.length % pictures.length]!
      const startedMs = performance.now()
      const { result } = await backend.run({ frames: [{ rgbHwc, geometry }] })
      runsMs.push(performance.now() - startedMs)
      boxes += result.frames[0]!.rows.length / 6
    }
    return performance.now() - beganMs
  }
  await forMs(job.seconds * 500)
  runsMs.length = boxes = 0
  const tookMs = await within(windows, () => forMs(job.seconds * 1_000))
  await backend.release()
  const runs = runsMs.length
  return {
    perSecond: (runs * 1e3) / tookMs,
    p50Ms: quantile(runsMs, 0.5),
    boxesPerFrame: boxes / runs,
    loadMs,
    warmUpMs,
    n: runs,
  }
}

async function bare(job: CeilingJob, context: Context, windows: Window[]): Promise<Figures> {
  const { batch, sessions } = job
  const bareSessions = await BareSessions.start(context.repository, job.model, {
    sessions,
    batch,
    feeds: Math.max(2, Math.ceil(fewestFrames / batch / sessions)),
    provider: context.provider,
    deviceId: context.deviceId,
  })
  await bareSessions.run(job.seconds * 300)
  const beganMs = performance.now()
  const { frames, p50Ms } = await within(windows, () => bareSessions.run(job.seconds * 1_000))
  const tookMs = performance.now() - beganMs
  await bareSessions.stop()
  const most = (key: 'loadMs' | 'firstMs') => Math.max(...bareSessions.started.map((each) => each[key]))
  return {
    perSecond: (frames * 1e3) / tookMs,
    p50Ms,
    loadMs: most('loadMs'),
    firstMs: most('firstMs'),
    n: frames,
  }
}

/** @throws NotHere where Python or its package is not */
async function bound(job: CeilingJob, context: Context, windows: Window[]): Promise<Figures> {
  const { path } = cameraDetectorOf(context.repository, job.model)
  const { widthPx, heightPx } = planDetector(cameraDetectorOf(context.repository, job.model)).input.size
  const script = fileURLToPath(new URL('./bound.py', import.meta.url))
  const shape = [job.batch, heightPx, widthPx, 3].map(String)
  const args = [script, path, context.provider, String(context.deviceId), String(job.seconds), ...shape]
  try {
    const { stdout } = await promisify(execFile)(context.python, args, { timeout: pythonWithinMs })
    const { fromMs, toMs, ...figures } = JSON.parse(stdout) as Record<string, number>
    windows.push([fromMs!, toMs!])
    return figures
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string }
    if (code === 'ENOENT') throw new NotHere(`there is no ${context.python}`)
    if (code === notInstalled) throw new NotHere(stderr.trim())
    throw error
  }
}
