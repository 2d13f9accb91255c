import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { residentBytes } from '../support/cpu.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { descendants } from '../support/processes.js'
import { metricIn, TestService } from '../support/service.js'
import { until } from '../support/until.js'

export type SoakOptions = Readonly<{
  cameras: number
  fps: number
  /** Time before the first sample that counts. */
  warmUpMs: number
  runMs: number
  everyMs: number
  /** Models to serve beside the cameras; all of the repository when absent. */
  models?: readonly string[]
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
  /** Of all looks at each loop during the run, the p99 of how late they were. */
  loopP99Ms: Readonly<{ control: number; engine: number; stream: number }>
  frames: Readonly<{ received: number; ended: number; inferred: number; superseded: number }>
  restarts: number
  /** Frames inferred before the first sample. */
  inferredBefore: number
}>

const repository = fileURLToPath(new URL('../../models', import.meta.url))

/** The metric of the control process is the time between two looks at its loop, lateness included. */
const lookEveryMs = 50
/** Looks behind each figure of the engine and of the stream process: those of a second. */
const looksPerBeat = 10

type Sample = Readonly<{ atMs: number; rssBytes: number; fds: number }>

/** Runs the service on looping RTSP cameras, with a subscriber, and watches its processes. */
export async function soak(options: SoakOptions, progress: (text: string) => void): Promise<SoakReport> {
  const rtsp = await rtspCameras(options.cameras)
  try {
    await using service = await TestService.start({
      pipeline: {
        modelServer: {},
        ...(options.models && { models: { repository, control: 'explicit', load: options.models } }),
        cameras: Array.from({ length: options.cameras }, (_, index) => ({
          id: `cam-${index + 1}`,
          url: rtsp.url(`/cam${index + 1}`),
          sampleFps: options.fps,
        })),
      },
    })
    for (let index = 1; index <= options.cameras; index += 1)
      await service.cameraIs(`cam-${index}`, 'live', 60_000)
    await until('models loaded', () => modelsAreLoaded(service), 300_000, 500)
    await service.stream()
    // Watched as well: pages of metrics make garbage, whose first round is a part of warming up.
    const { frames } = await watch(service, { ...options, runMs: options.warmUpMs }, progress)
    return { ...(await watch(service, options, progress)), inferredBefore: frames.inferred }
  } finally {
    await rtsp.stop()
  }
}

/** Until then the model server grows, and rightly so. */
async function modelsAreLoaded(service: TestService): Promise<true | undefined> {
  const { ok } = await fetch(`${service.url}/v2/health/ready`)
  return ok ? true : undefined
}

async function watch(
  service: TestService,
  { runMs, everyMs }: SoakOptions,
  progress: (text: string) => void,
): Promise<Omit<SoakReport, 'inferredBefore'>> {
  const pids = processesOf(service.pid)
  const samples = new Map<string, Sample[]>([...pids.keys()].map((name) => [name, []]))
  const control: number[] = []
  const engine: number[] = []
  const stream: number[] = []
  const beganMs = performance.now()
  for (let atMs = 0; atMs <= runMs; atMs = performance.now() - beganMs) {
    for (const [name, pid] of pids) samples.get(name)?.push({ atMs, ...sample(pid) })
    const page = await service.metrics()
    control.push(metricIn(page, /nodejs_eventloop_lag_p99_seconds/) * 1e3 - lookEveryMs)
    engine.push(metricIn(page, /gantry_engine_eventloop_p99_seconds\{engine="0"\}/) * 1e3)
    stream.push(metricIn(page, /gantry_stream_eventloop_p99_seconds/) * 1e3)
    progress(`${Math.round(atMs / 1e3)} s of ${Math.round(runMs / 1e3)} s`)
    await pause(everyMs)
  }
  const count = (state: string) =>
    service.metric(new RegExp(`gantry_frames_total\\{camera="[^"]+",state="${state}",cause="[^"]*"\\}`))
  return {
    processes: [...samples].map(([name, taken]) => summary(name, taken)),
    loopP99Ms: {
      control: p99OfLooks(control, everyMs / lookEveryMs),
      engine: p99OfLooks(engine, looksPerBeat),
      stream: p99OfLooks(stream, looksPerBeat),
    },
    frames: {
      received: await service.metric(/gantry_frames_received_total\{camera="[^"]+"\}/),
      ended: await service.metric(/gantry_frames_total\{[^}]+\}/),
      inferred: await count('inferred'),
      superseded: await count('superseded'),
    },
    restarts: await service.metric(/gantry_engine_restarts_total\{engine="0"\}/),
  }
}

/** The long-lived processes by the file they run; decoders and the children that try a model out come and go. */
const entries = [
  ['engine', /\/engine\/main\.js(?: |$)/],
  ['stream', /\/processes\/stream\/main\.js(?: |$)/],
  ['model server', /\/processes\/model-server\/main\.js(?: |$)/],
] as const

function processesOf(pid: number): ReadonlyMap<string, number> {
  const children = descendants(pid)
  const found = entries.flatMap(([name, entry]) => {
    const child = children.find(({ command }) => entry.test(command))
    return child ? [[name, child.pid] as const] : []
  })
  return new Map([['control', pid], ...found])
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

/**
 * The p99 of single looks, of windows whose own p99 is the latest of their looks: that of a window of n looks stays under it with a
 * chance of 0.99^n.
 */
function p99OfLooks(windows: readonly number[], looks: number): number {
  return [...windows].sort((a, b) => a - b)[Math.floor(windows.length * 0.99 ** looks)] ?? 0
}
