/** The whole service on RTSP cameras: what it analyses of what they send, how late, and what that costs. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ReadinessView } from '../../../src/api/readiness-schemas.js'
import { cameraSettings, dockClip, rtspCameras } from '../../support/demo-cameras.js'
import { serviceBytes, serviceCpuSeconds } from '../../support/service-cpu.js'
import { metricIn, TestService } from '../../support/service.js'
import { realFfmpeg } from '../../support/stand-in-ffmpeg.js'
import { until } from '../../support/until.js'
import { ffmpegRun } from '../../support/video-clips.js'
import { type Figures, quantile } from '../bench.js'
import { largestThat } from './largest-that.js'
import { type Context, NotHere, type Tell, type Window } from './measure.js'
import { type MostJob, placesOf, type ServiceJob } from './plan.js'
import { sizesText } from './sizes-text.js'

/** Plans for several sizes and instances take their time. */
const startedWithinMs = 120_000
const liveWithinMs = 60_000
/** Of cameras of a service that has been warm for long. */
const switchedWithinMs = 20_000
const held = { share: 0.98, p99Ms: 100 }

/** Settings of a service with a detector of this bench. */
export function pipelineOf(
  { repository, provider, deviceId }: Context,
  model: string,
  inference: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return {
    models: { repository },
    ensemble: model,
    inference: { providers: [provider], deviceId, ...inference },
    log: { format: 'json', level: 'warn' },
  }
}

export async function measureService(job: ServiceJob, context: Context, tell: Tell): Promise<void> {
  const { cameras, fps, maxBatchSize, onCard } = job
  const rtsp = await rtspCameras(cameras)
  const scratch = mkdtempSync(join(tmpdir(), 'gantry-bench-ffmpeg-'))
  try {
    await using service = await TestService.start({
      startedWithinMs,
      pipeline: {
        ...pipelineOf(context, job.model, maxBatchSize === undefined ? {} : { maxBatchSize }),
        // All of them, to see what each takes.
        decoding: { gpuMemoryShare: 1 },
        cameras: cameraSettings(rtsp, cameras, fps).map((camera) => ({
          ...camera,
          ...(onCard && { hwaccel: 'cuda' }),
        })),
      },
      ...(onCard === 'decoding' && { env: { PATH: pathWithoutScaling(scratch) } }),
    })
    const firstFrameMs = await firstFrame(service)
    await live(service, cameras)
    await warm(service)
    await pause(context.settleMs)
    const { figures, window } = await observed(service, cameras * fps, job.seconds)
    const [place] = placesOf(job)
    tell(
      place!,
      'frames/s',
      {
        ...figures,
        readyMs: service.startedInMs,
        firstFrameMs,
        decoderCoresPerCamera: figures.decoderCores / cameras,
        decoderMiBPerCamera: serviceBytes(service.pid).decoders / cameras / 2 ** 20,
        ...(onCard && { decodedBy: decodedBy(await service.metrics()) }),
        ...(await detectorOf(service)),
      },
      [window],
    )
  } finally {
    await rtsp.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** A PATH whose ffmpeg says that it has no filter for scaling on a card. @param folder - for that program. */
function pathWithoutScaling(folder: string): string {
  const real = realFfmpeg()
  const script = `#!/bin/sh
case " $* " in
  *' -filters '*) ${real} "$@" | grep -v scale_cuda ;;
  *) exec ${real} "$@" ;;
esac
`
  writeFileSync(join(folder, 'ffmpeg'), script, { mode: 0o755 })
  return `${folder}:${process.env['PATH'] ?? ''}`
}

/** Where cameras are decoded, such as `16 cuda-scaled`. */
function decodedBy(page: string): string {
  const places = [...page.matchAll(/^gantry_camera_decoder\{camera="[^"]+",by="([^"]+)"\} 1$/gm)].map(
    ([, by = '']) => by,
  )
  return [...new Set(places)]
    .map((by) => `${places.filter((other) => other === by).length} ${by}`)
    .sort()
    .join(', ')
}

/** One service whose cameras are switched on and off. */
export async function measureMost(job: MostJob, context: Context, tell: Tell): Promise<void> {
  const clip = await clipOf1080(context.clip1080)
  const rtsp = await rtspCameras(job.most, clip)
  const overAtMs = performance.now() + job.usualSeconds * 1_000
  try {
    await using service = await TestService.start({
      startedWithinMs,
      pipeline: {
        ...pipelineOf(context, job.model, { maxBatchSize: 16 }),
        cameras: cameraSettings(rtsp, job.most, job.fps).map((camera) => ({ ...camera, enabled: false })),
      },
    })
    await warm(service)
    let on = 0
    const switchTo = async (count: number) => {
      for (; on < count; on += 1)
        await service.send('PATCH', `/api/v1/cameras/cam-${on + 1}`, { enabled: true })
      for (; on > count; on -= 1) await service.send('PATCH', `/api/v1/cameras/cam-${on}`, { enabled: false })
      await live(service, count, switchedWithinMs)
      await pause(context.settleMs)
    }
    const tried: string[] = []
    /** Of the numbers that it holds; each is larger than the one before. */
    const kept: Awaited<ReturnType<typeof observed>>[] = []
    const holds = async (count: number) => {
      const isSwitched = await switchTo(count).then(
        () => true,
        () => false,
      )
      if (!isSwitched) {
        tried.push(`${count}: not all live within ${switchedWithinMs / 1e3} s`)
        return false
      }
      const taken = await observed(service, count * job.fps, job.seconds)
      const { perSecond, offered, p99Ms } = taken.figures
      const isHeld = perSecond >= held.share * offered && p99Ms <= held.p99Ms
      tried.push(`${count}: ${perSecond.toFixed(0)} of ${offered}, p99 ${p99Ms.toFixed(0)} ms`)
      if (isHeld) kept.push(taken)
      return isHeld
    }
    const isOver = () => performance.now() > overAtMs
    const { largest, exactTo } = await largestThat(holds, { from: job.from, most: job.most, isOver })
    const [place] = placesOf(job)
    const best = kept.at(-1)
    const figures = { cameras: largest, exactTo, most: job.most, tried: tried.join('; ') }
    tell(place!, 'cameras', { ...figures, ...best?.figures }, best && [best.window])
  } finally {
    await rtsp.stop()
  }
}

type Observed = Figures & Record<'perSecond' | 'offered' | 'p50Ms' | 'p99Ms' | 'decoderCores', number>

/** @param offered - frames per second of all cameras. */
async function observed(
  service: TestService,
  offered: number,
  seconds: number,
): Promise<Readonly<{ figures: Observed; window: Window }>> {
  const lateMs: number[] = []
  const eachSecond: number[] = []
  const stream = await service.stream()
  const beganMs = performance.now()
  stream.onMessage((message) => {
    stream.messages.length = 0
    if (message.type !== 'detections') return
    lateMs.push(message.timingsMs.captureToPublish)
    const second = Math.floor((performance.now() - beganMs) / 1e3)
    eachSecond[second] = (eachSecond[second] ?? 0) + 1
  })
  const from = Date.now()
  const before = {
    ...countsOf(await service.metrics()),
    cpu: serviceCpuSeconds(service.pid),
    atMs: performance.now(),
  }
  await pause(seconds * 1_000)
  const after = {
    ...countsOf(await service.metrics()),
    cpu: serviceCpuSeconds(service.pid),
    atMs: performance.now(),
  }
  const window = [from, Date.now()] as const
  stream.close()
  const took = (after.atMs - before.atMs) / 1e3
  const rate = (key: keyof ReturnType<typeof countsOf>) => (after[key] - before[key]) / took
  const cores = (part: keyof typeof after.cpu) => (after.cpu[part] - before.cpu[part]) / took
  return {
    figures: {
      perSecond: rate('inferred'),
      offered,
      p50Ms: quantile(lateMs, 0.5),
      p99Ms: quantile(lateMs, 0.99),
      supersededPerSecond: rate('superseded'),
      shedPerSecond: rate('shed'),
      meanBatch: rate('batched') / rate('runs'),
      eachSecond: Array.from({ length: Math.floor(seconds) }, (_, at) => eachSecond[at] ?? 0).join(' '),
      decoderCores: cores('decoders'),
      engineCores: cores('engine'),
      controlCores: cores('control'),
      streamCores: cores('stream'),
      hwaccelFallbacks: after.fallbacks,
      n: lateMs.length,
    },
    window,
  }
}

function countsOf(page: string) {
  return {
    inferred: metricIn(page, /gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/),
    superseded: metricIn(page, /gantry_frames_total\{camera="[^"]+",state="superseded",cause=""\}/),
    shed: metricIn(page, /gantry_frames_total\{camera="[^"]+",state="shed",cause="[^"]+"\}/),
    runs: metricIn(page, /gantry_batch_size_count\{model="[^"]+"\}/),
    batched: metricIn(page, /gantry_batch_size_sum\{model="[^"]+"\}/),
    fallbacks: metricIn(page, /gantry_source_warnings_total\{camera="[^"]+",kind="hwaccel_fallback"\}/),
  }
}

/** @returns ms from the start of the service to its first result. */
async function firstFrame(service: TestService): Promise<number> {
  const beganMs = performance.now()
  await until('a result', async () => countsOf(await service.metrics()).inferred > 0, liveWithinMs)
  return service.startedInMs + performance.now() - beganMs
}

async function live(service: TestService, cameras: number, withinMs = liveWithinMs): Promise<void> {
  const count = () => service.metric(/gantry_camera_state\{camera="[^"]+",state="live"\}/)
  await until(`${cameras} live cameras`, async () => (await count()) === cameras, withinMs, 200)
}

/** What runs, as `/readyz` tells it. */
export async function detectorOf(service: TestService): Promise<Figures> {
  const detector = await readyDetector(service)
  if (!detector) return { provider: 'none' }
  const { provider, instances, maxBatchSize, batchSizes } = detector
  return { provider, instances, batch: maxBatchSize, ...(batchSizes && { sizes: sizesText(batchSizes) }) }
}

async function readyDetector(service: TestService): Promise<ReadinessView['engines'][number]['detector']> {
  const { engines } = await service.json<ReadinessView>('/readyz')
  return engines[0]?.detector ?? null
}

/** Waits until batches have all sizes: the figures are of a service that has run for a while. */
async function warm(service: TestService): Promise<void> {
  const toCome = async () => (await readyDetector(service))?.batchSizesToCome ?? []
  await until('all sizes of batches are warm', async () => (await toCome()).length === 0, startedWithinMs)
}

/** The dock clip, enlarged, ten seconds of it. @throws NotHere where ffmpeg cannot encode and no clip is given */
async function clipOf1080(path: string): Promise<string> {
  if (existsSync(path)) return path
  mkdirSync(dirname(path), { recursive: true })
  const part = path.replace(/(\.\w+)?$/, '.part.mp4')
  const x264 = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '50', '-bf', '0', '-pix_fmt', 'yuv420p']
  try {
    await ffmpegRun('-t', '10', '-i', dockClip, '-vf', 'scale=1920:1080', '-an', ...x264, part)
  } catch (error) {
    throw new NotHere(
      `no clip of 1920x1080 can be made, give one with --clip: ${String(error).split('\n')[0]}`,
    )
  }
  renameSync(part, path)
  return path
}
