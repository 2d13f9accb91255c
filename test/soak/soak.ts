import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { residentBytes } from '../support/cpu.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'

export type SoakOptions = Readonly<{
  cameras: number
  fps: number
  /** Time before the first sample that counts. */
  warmUpMs: number
  runMs: number
  everyMs: number
}>

/** What one process did over the run. */
export type ProcessSoak = Readonly<{
  name: string
  firstRssBytes: number
  lastRssBytes: number
  /** Slope of the least-squares line through the samples. */
  rssBytesPerMinute: number
  fewestFds: number
  mostFds: number
}>

export type SoakReport = Readonly<{
  processes: readonly ProcessSoak[]
  /** Middle of the samples of each loop's p99 delay. */
  loopP99Ms: Readonly<{ control: number; engine: number }>
  frames: Readonly<{ received: number; ended: number; inferred: number; superseded: number }>
  restarts: number
}>

/** The metric of the control process is the time between two looks at its loop, lateness included. */
const lookEveryMs = 50

type Sample = Readonly<{ atMs: number; rssBytes: number; fds: number }>

/** Runs the service on looping RTSP cameras, with a subscriber, and watches its processes. */
export async function soak(options: SoakOptions, progress: (text: string) => void): Promise<SoakReport> {
  const rtsp = await rtspCameras(options.cameras)
  try {
    await using service = await TestService.start({
      pipeline: {
        modelServer: {},
        cameras: Array.from({ length: options.cameras }, (_, index) => ({
          id: `cam-${index + 1}`,
          url: rtsp.url(`/cam${index + 1}`),
          sampleFps: options.fps,
        })),
      },
    })
    for (let index = 1; index <= options.cameras; index += 1)
      await service.cameraIs(`cam-${index}`, 'live', 60_000)
    await pause(options.warmUpMs)
    return await watch(service, options, progress)
  } finally {
    await rtsp.stop()
  }
}

async function watch(
  service: TestService,
  { runMs, everyMs }: SoakOptions,
  progress: (text: string) => void,
): Promise<SoakReport> {
  const pids = processesOf(service.pid)
  const samples = new Map<string, Sample[]>([...pids.keys()].map((name) => [name, []]))
  const control: number[] = []
  const engine: number[] = []
  const beganMs = performance.now()
  for (let atMs = 0; atMs <= runMs; atMs = performance.now() - beganMs) {
    for (const [name, pid] of pids) samples.get(name)?.push({ atMs, ...sample(pid) })
    control.push((await service.metric(/nodejs_eventloop_lag_p99_seconds/)) * 1e3 - lookEveryMs)
    engine.push((await service.metric(/gantry_engine_eventloop_p99_seconds\{engine="0"\}/)) * 1e3)
    progress(`${Math.round(atMs / 1e3)} s of ${Math.round(runMs / 1e3)} s`)
    await pause(everyMs)
  }
  const count = (state: string) =>
    service.metric(new RegExp(`gantry_frames_total\\{camera="[^"]+",state="${state}",cause="[^"]*"\\}`))
  return {
    processes: [...samples].map(([name, taken]) => summary(name, taken)),
    loopP99Ms: { control: median(control), engine: median(engine) },
    frames: {
      received: await service.metric(/gantry_frames_received_total\{camera="[^"]+"\}/),
      ended: await service.metric(/gantry_frames_total\{[^}]+\}/),
      inferred: await count('inferred'),
      superseded: await count('superseded'),
    },
    restarts: await service.metric(/gantry_engine_restarts_total\{engine="0"\}/),
  }
}

/** Our processes by what they are; decoders are ffmpeg's affair. */
function processesOf(pid: number): ReadonlyMap<string, number> {
  const ours = descendants(pid).filter(({ command }) => /main\.js/.test(command))
  const name = (command: string) => (/engine\/main/.test(command) ? 'engine' : 'model server')
  return new Map([
    ['control', pid],
    ...ours.map(({ command, pid: child }) => [name(command), child] as const),
  ])
}

function sample(pid: number): Omit<Sample, 'atMs'> {
  return { rssBytes: residentBytes(pid), fds: readdirSync(`/proc/${pid}/fd`).length }
}

function summary(name: string, samples: readonly Sample[]): ProcessSoak {
  const fds = samples.map((each) => each.fds)
  return {
    name,
    firstRssBytes: samples[0]?.rssBytes ?? 0,
    lastRssBytes: samples.at(-1)?.rssBytes ?? 0,
    rssBytesPerMinute: slope(samples) * 60_000,
    fewestFds: Math.min(...fds),
    mostFds: Math.max(...fds),
  }
}

/** Bytes per millisecond. */
function slope(samples: readonly Sample[]): number {
  const mean = (of: (each: Sample) => number) =>
    samples.reduce((sum, each) => sum + of(each), 0) / samples.length
  const [atMean, rssMean] = [mean((s) => s.atMs), mean((s) => s.rssBytes)]
  const spread = samples.reduce((sum, s) => sum + (s.atMs - atMean) ** 2, 0)
  return spread === 0
    ? 0
    : samples.reduce((sum, s) => sum + (s.atMs - atMean) * (s.rssBytes - rssMean), 0) / spread
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
