import { availableParallelism, cpus } from 'node:os'
import type { CameraEntry } from '../../cameras/camera-entry.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type { CameraCost, ServiceLoad } from '../../cameras/headroom.js'
import { wallMs, nowMs } from '../../lifecycle/clock.js'

const lookEveryMs = 1_000
/** What is told is of the last half minute. */
const mostLooks = 30
/** Fewer tell nothing. */
const leastLooks = 10

/** What the service takes, and each camera of it. */
export type MeasuredLoad = Readonly<{
  /** Wall time. */
  atMs: number
  /** Without cameras that are to come. */
  load: Omit<ServiceLoad, 'comingCameras'>
  costs: ReadonlyMap<string, CameraCost>
}>

/** Sums from the start on; what is told is the difference of two. */
type Look = Readonly<{
  atMs: number
  /** Of all processors: seconds in which they did what does not give way. */
  machineSeconds: number
  /** Of engines and this process. */
  ownSeconds: number
  frames: number
  runMs: number
  /** Live cameras: the frames that have come, and the cores that the decoder took in the last second. */
  cameras: ReadonlyMap<string, Readonly<{ frames: number; decoderCores: number }>>
}>

/** Of this machine, as an operating system counts it. */
export type MachineUse = Readonly<{
  /** Cores that the service may use. */
  cores: number
  /** Seconds in which processors were busy, what runs at a lower priority left out; undefined where some of them are not ours. */
  busySeconds: number | undefined
}>

/** Models of API clients give way to cameras, and are not counted. */
export function machineUse(): MachineUse {
  const all = cpus()
  const cores = availableParallelism()
  const busy = all.reduce((sum, { times }) => sum + times.user + times.sys + times.irq, 0) / 1_000
  return { cores, busySeconds: cores < all.length ? undefined : busy }
}

/** Measures what cameras take of cores and instances, for as long as the same cameras are live on the same instances. */
export class LoadWatch {
  #looks: Look[] = []
  #engineSeconds = 0
  #frames = 0
  #runMs = 0
  #instances = 0
  #measured: MeasuredLoad | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * @param cameras - those that there are.
   * @param instances - of all engines that are ready.
   */
  constructor(
    readonly cameras: () => Iterable<
      Pick<CameraEntry, 'config' | 'status' | 'receivedFrames' | 'decoderCores' | 'p99Ms'>
    >,
    readonly instances: () => number,
    readonly machine: () => MachineUse = machineUse,
  ) {}

  /** Undefined before the same cameras have been live for ten seconds; as it was then, while others come and go. */
  get measured(): MeasuredLoad | undefined {
    return this.#measured
  }

  start(): void {
    this.#timer ??= setInterval(() => this.look(), lookEveryMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** CPU time that an engine took since it was asked last. */
  engineUsed(seconds: number): void {
    this.#engineSeconds += seconds
  }

  /** A result has come. */
  ran(run: EngineResult['run']): void {
    this.#frames += 1
    if (run === undefined) return
    this.#runMs += run.timingsMs.infer / Math.max(1, run.batchSize) + run.timingsMs.postprocess
  }

  /** @param atMs - `nowMs`. */
  look(atMs = nowMs()): void {
    const { user, system } = process.cpuUsage()
    const live = [...this.cameras()].filter(({ status }) => status.state === 'live')
    const instances = this.instances()
    const before = this.#looks.at(-1)
    const isSame =
      instances === this.#instances &&
      before?.cameras.size === live.length &&
      live.every(({ config }) => before.cameras.has(config.id))
    if (!isSame) this.#looks = []
    this.#instances = instances
    this.#looks.push({
      atMs,
      machineSeconds: this.machine().busySeconds ?? 0,
      ownSeconds: this.#engineSeconds + (user + system) / 1e6,
      frames: this.#frames,
      runMs: this.#runMs,
      cameras: new Map(
        live.map(({ config, receivedFrames, decoderCores }) => [
          config.id,
          { frames: receivedFrames, decoderCores },
        ]),
      ),
    })
    if (this.#looks.length > mostLooks) this.#looks.shift()
    if (this.#looks.length >= leastLooks && live.length > 0 && instances > 0)
      this.#measured = this.#measure(Math.max(...live.map(({ p99Ms = 0 }) => p99Ms))) ?? this.#measured
  }

  #measure(p99Ms: number): MeasuredLoad | undefined {
    const [first, last] = [this.#looks[0]!, this.#looks.at(-1)!]
    const seconds = (last.atMs - first.atMs) / 1_000
    const frames = last.frames - first.frames
    if (frames === 0 || seconds <= 0) return undefined
    const costs = new Map([...last.cameras.keys()].map((id) => [id, this.#costOf(id)]))
    const decoderCores = [...costs.values()].reduce((sum, cost) => sum + cost.decoderCores, 0)
    const ownSeconds = last.ownSeconds - first.ownSeconds
    const { cores, busySeconds } = this.machine()
    const busy =
      busySeconds === undefined
        ? ownSeconds / seconds + decoderCores
        : (last.machineSeconds - first.machineSeconds) / seconds
    return {
      atMs: wallMs(),
      load: {
        cameras: costs.size,
        cores: { all: cores, busy },
        cpuMsPerFrame: (ownSeconds / frames) * 1_000,
        instances: { all: this.#instances, busy: (last.runMs - first.runMs) / seconds / 1_000 },
        runMs: (last.runMs - first.runMs) / frames,
        p99Ms,
      },
      costs,
    }
  }

  #costOf(id: string): CameraCost {
    const [first, ...later] = this.#looks
    const seconds = (later.at(-1)!.atMs - first!.atMs) / 1_000
    const of = (look: Look | undefined) => look?.cameras.get(id) ?? { frames: 0, decoderCores: 0 }
    return {
      framesPerSecond: (of(later.at(-1)).frames - of(first).frames) / seconds,
      // At the first look it may have been there for less than a second.
      decoderCores: later.reduce((sum, look) => sum + of(look).decoderCores, 0) / later.length,
    }
  }
}
