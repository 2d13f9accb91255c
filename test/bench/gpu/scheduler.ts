/** The way of the frames through the scheduler, with always more of them than fit, beside bare sessions of the same batch and number. */
import type { DetectorResult } from '../../../src/detector/camera-detector.js'
import { BareSessions } from '../bare-workers.js'
import { quantile } from '../bench.js'
import { sizesText } from './sizes-text.js'
import { demoPictures } from '../clip-detector.js'
import { SaturatedDetector } from '../saturated-detector.js'
import { type Context, type Tell, type Window, within } from './measure.js'
import { placesOf, type SchedulerJob } from './plan.js'

/** Of each, in turn. */
const rounds = 2

export async function measureScheduler(job: SchedulerJob, context: Context, tell: Tell): Promise<void> {
  const { provider, deviceId, repository } = context
  const { load, sizes } = job
  let results: DetectorResult[] = []
  const beganMs = performance.now()
  const ours = await SaturatedDetector.start({
    repository,
    ensemble: job.model,
    inference: {
      providers: [provider],
      deviceId,
      ...(load && { maxBatchSize: load.batch, instances: load.instances }),
      ...(load && sizes === 'one' && { batchSizes: [load.batch] }),
    },
    pictures: demoPictures,
    detected: (result) => results.push(result),
  })
  const startMs = performance.now() - beganMs
  await ours.warm()
  const { info } = ours
  const bare = await BareSessions.start(repository, job.model, {
    sessions: info.instances,
    batch: info.maxBatchSize,
    feeds: 2,
    provider,
    deviceId,
  })
  const roundMs = job.seconds * 1_000
  await bare.run(roundMs / 2)
  await ours.run(roundMs / 2)
  await ours.drain()
  results = []
  const windows: Window[] = []
  const taken: { ours: number; bare: number }[] = []
  const used = { cpuUs: 0, ms: 0, loop: 0 }
  while (taken.length < rounds) {
    const bareMs = performance.now()
    const { frames } = await bare.run(roundMs)
    const bareFps = (frames * 1e3) / (performance.now() - bareMs)
    const oursMs = performance.now()
    const [cpu, loop] = [process.cpuUsage(), performance.eventLoopUtilization()]
    const inferred = await within(windows, () => ours.run(roundMs))
    const tookMs = performance.now() - oursMs
    const { user, system } = process.cpuUsage(cpu)
    used.cpuUs += user + system
    used.ms += tookMs
    used.loop += performance.eventLoopUtilization(loop).utilization / rounds
    await ours.drain()
    taken.push({ ours: (inferred * 1e3) / tookMs, bare: bareFps })
  }
  await bare.stop()
  await ours.stop()
  const mean = (of: (round: (typeof taken)[number]) => number) =>
    taken.reduce((sum, round) => sum + of(round), 0) / taken.length
  const ms = (stage: 'queue' | 'infer' | 'postprocess', q: number) =>
    quantile(
      results.map(({ timingsMs }) => timingsMs[stage]),
      q,
    )
  const runs = results.reduce((sum, { batchSize }) => sum + 1 / batchSize, 0)
  const [place] = placesOf(job)
  tell(
    place!,
    'frames/s',
    {
      perSecond: mean((round) => round.ours),
      barePerSecond: mean((round) => round.bare),
      ofBare: mean((round) => round.ours / round.bare),
      meanBatch: results.length / runs,
      queueP50Ms: ms('queue', 0.5),
      queueP99Ms: ms('queue', 0.99),
      inferP50Ms: ms('infer', 0.5),
      inferP99Ms: ms('infer', 0.99),
      postprocessP50Ms: ms('postprocess', 0.5),
      cores: used.cpuUs / 1e3 / used.ms,
      loopBusy: used.loop,
      startMs,
      provider: info.provider,
      batch: info.maxBatchSize,
      instances: info.instances,
      cameras: ours.cameras,
      ...(info.sizes && { sizes: sizesText(info.sizes.warm) }),
      n: results.length,
    },
    windows,
  )
}
