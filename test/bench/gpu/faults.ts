/** What becomes of the cameras when the card, or what runs on it, fails. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Readiness } from '../../../src/api/gantry.js'
import { cameraSettings, rtspCameras } from '../../support/demo-cameras.js'
import { TestService } from '../../support/service.js'
import { until } from '../../support/until.js'
import type { Figures } from '../bench.js'
import { type Context, isOnCard, type Tell, type Window, within } from './measure.js'
import { type FaultJob, placesOf } from './plan.js'
import { detectorOf, pipelineOf } from './service.js'

/** No machine has so many cards. */
const absentDevice = 63
const leftMiB = { atStart: 200, later: 8 }
const startedWithinMs = 60_000
/** Longest that a service is waited for which cannot run. */
const toldWithinMs = 20_000
/** Longest that the card is waited for once it is free again. */
const backWithinMs = 10_000

/** Takes the service through its fault. */
type Course = (
  start: (inference?: Readonly<Record<string, unknown>>) => Promise<TestService>,
  job: FaultJob,
  context: Context,
  windows: Window[],
) => Promise<Figures>

export async function measureFault(job: FaultJob, context: Context, tell: Tell): Promise<void> {
  const rtsp = await rtspCameras(job.cameras)
  const started: TestService[] = []
  const start = async (inference: Readonly<Record<string, unknown>> = {}) => {
    const service = await TestService.start({
      startedWhen: 'answering',
      startedWithinMs,
      pipeline: {
        ...pipelineOf(context, job.model, inference),
        cameras: cameraSettings(rtsp, job.cameras, 5),
      },
    })
    started.push(service)
    return service
  }
  const windows: Window[] = []
  try {
    const figures = await faults[job.fault](start, job, context, windows)
    const [place] = placesOf(job)
    tell(place!, 'ms', figures, windows)
  } finally {
    for (const service of started) await service[Symbol.asyncDispose]()
    await rtsp.stop()
  }
}

const faults: Readonly<Record<FaultJob['fault'], Course>> = {
  kill: async (start, job, _context, windows) => {
    const service = await start()
    await service.ready(startedWithinMs)
    await until('results', async () => (await inferred(service)) > 0, startedWithinMs)
    await pause(job.seconds * 1_000)
    const { engines } = await service.readiness()
    const pid = engines[0]?.pid
    if (!pid) throw new Error('no engine runs')
    return within(windows, async () => {
      process.kill(pid, 'SIGKILL')
      const since = clock()
      await until('that it is not ready', async () => !(await service.readiness()).ready)
      const notReadyMs = since()
      const isBack = ({ ready, engines: [engine] }: Readiness) => ready && engine?.pid !== pid
      await until('the engine', async () => isBack(await service.readiness()), startedWithinMs)
      const backMs = since()
      const before = await inferred(service)
      await until('results', async () => (await inferred(service)) > before, startedWithinMs)
      return { notReadyMs, backMs, framesMs: since(), ...(await detectorOf(service)) }
    })
  },

  absent: async (start, _job, context) => {
    const since = clock()
    const service = await start({ providers: [gpuOf(context)], deviceId: absentDevice })
    const ended = await Promise.race([service.exited(), pause(toldWithinMs, 'no')])
    const toldMs = since()
    const said = service.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    return { ended: String(ended), toldMs, ...reasonIn(said.join('; ')) }
  },

  'absent-cpu': async (start, _job, context) => {
    const since = clock()
    const service = await start({ providers: [gpuOf(context), 'cpu'], deviceId: absentDevice })
    await service.ready(startedWithinMs)
    const readyMs = since()
    await until('results', async () => (await inferred(service)) > 0, startedWithinMs)
    return { readyMs, framesMs: since(), ...(await detectorOf(service)), ...(await reasonOf(service)) }
  },

  full: async (start, _job, context) => {
    const hog = await Hog.take(context, leftMiB.atStart)
    const since = clock()
    try {
      const service = await start({ providers: providersOf(context) })
      await service.ready(startedWithinMs)
      const readyMs = since()
      const runs = await detectorOf(service)
      const reason = await reasonOf(service)
      await hog?.end()
      const back = runs.provider === context.provider ? {} : await backOnCard(service, context)
      return { freeMiB: hog?.freeMiB ?? 'none taken', readyMs, ...runs, ...reason, ...back }
    } finally {
      await hog?.end()
    }
  },

  fills: async (start, job, context, windows) => {
    const service = await start({ providers: providersOf(context) })
    await service.ready(startedWithinMs)
    await until('results', async () => (await inferred(service)) > 0, startedWithinMs)
    const hog = await Hog.take(context, leftMiB.later)
    try {
      const before = { inferred: await inferred(service), shed: await shed(service) }
      await within(windows, () => pause(job.seconds * 1_000))
      const after = { inferred: await inferred(service), shed: await shed(service) }
      return {
        freeMiB: hog?.freeMiB ?? 'none taken',
        perSecond: (after.inferred - before.inferred) / job.seconds,
        shed: after.shed - before.shed,
        ...(await detectorOf(service)),
        ...(await reasonOf(service)),
      }
    } finally {
      await hog?.end()
    }
  },
}

/** The provider of the card; where there is none, the one that is not installed. */
function gpuOf(context: Context): string {
  return isOnCard(context) ? context.provider : 'cuda'
}

function providersOf({ provider }: Context): readonly string[] {
  return [...new Set([provider, 'cpu'])]
}

function clock(): () => number {
  const beganMs = performance.now()
  return () => performance.now() - beganMs
}

const inferred = (service: TestService) =>
  service.metric(/gantry_frames_total\{camera="[^"]+",state="inferred",cause=""\}/)
const shed = (service: TestService) =>
  service.metric(/gantry_frames_total\{camera="[^"]+",state="shed",cause="[^"]+"\}/)

/** What becomes of a service that does not run on the card, once that is free. */
async function backOnCard(service: TestService, context: Context): Promise<Figures> {
  const since = clock()
  const isBack = async () => (await detectorOf(service)).provider === context.provider
  return until('the card', isBack, backWithinMs).then(
    () => ({ backOnCardMs: since() }),
    () => ({ backOnCard: `not within ${backWithinMs / 1e3} s` }),
  )
}

/** What `/readyz` says beside that it is ready. */
async function reasonOf(service: TestService): Promise<Figures> {
  const { reasons, engines } = await service.readiness()
  const notes = engines.flatMap(({ detector }) => detector?.providerNotes ?? [])
  return reasonIn([...reasons, ...notes].join('; '))
}

function reasonIn(text: string): Figures {
  if (text === '') return {}
  return { reason: text.length > 300 ? `${text.slice(0, 300)} ... (${text.length} characters)` : text }
}

/** A program that holds the memory of the card. */
class Hog {
  private constructor(
    readonly child: ChildProcess,
    readonly freeMiB: number,
  ) {}

  /** @returns undefined where there is no card whose memory could be taken. */
  static async take(context: Context, leaveMiB: number): Promise<Hog | undefined> {
    if (!isOnCard(context)) return undefined
    const script = fileURLToPath(new URL('./hog.py', import.meta.url))
    const child = spawn(context.python, [script, String(leaveMiB), String(context.deviceId)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the program that takes the memory of the card ended with ${String(code)}`)
    })
    ended.catch(() => undefined)
    const lines = createInterface({ input: child.stdout })
    const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string]
    return new Hog(child, Number(line))
  }

  /** Idempotent. */
  async end(): Promise<void> {
    this.child.stdin?.end()
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit')
  }
}
