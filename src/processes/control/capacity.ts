import { availableParallelism } from 'node:os'
import type { NodeCapacity } from '../../cluster/node-weights.js'
import type { AdmissionPolicy } from '../../config/capacity.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import { AdmissionRefusedError } from '../../cameras/engine-errors.js'
import { type CameraCost, type Headroom, headroomOf } from '../../cameras/headroom.js'
import type { HeadroomQuestion, HeadroomView } from '../../api/gantry.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { Log } from '../../lifecycle/log.js'
import { LoadWatch, type MeasuredLoad } from './load-watch.js'

export type CapacityDeps = Readonly<{
  directory: CameraDirectory
  /** Of all engines that are ready. */
  instances: () => number
  admission: AdmissionPolicy
  latencyObjectiveMs: number
  log: Log
}>

const limits = {
  cpu: 'the processor is used up',
  instances: 'the inference instances are busy all the time',
  latency: 'results come later than latencyObjectiveMs',
} as const satisfies Record<Headroom['limitedBy'], string>

/** How many more cameras the service can serve, and who says no to those that are too many. */
export class Capacity {
  readonly watch: LoadWatch
  /** Cameras that are being taken on. */
  readonly #underWay = new Set<string>()

  constructor(readonly deps: CapacityDeps) {
    this.watch = new LoadWatch(() => deps.directory, deps.instances)
  }

  measure({ headroom }: Pick<ServiceMetrics, 'headroom'>): void {
    const { cameras } = this.headroom()
    if (cameras === null) headroom.remove()
    else headroom.set(cameras)
  }

  /** @throws CameraNotFoundError of a camera that is to be the measure. */
  headroom({ like, sampleFps, latencyMs }: HeadroomQuestion = {}): HeadroomView {
    if (like !== undefined) this.deps.directory.get(like)
    const { measured } = this.watch
    const objectiveMs = latencyMs ?? this.deps.latencyObjectiveMs
    const cost = measured && costOf(measured, like, sampleFps)
    const unknown = {
      cameras: null,
      limitedBy: null,
      objectiveMs,
      now: null,
      perCamera: null,
      predicted: null,
    }
    if (measured === undefined)
      return { ...unknown, reason: 'not known yet: no cameras have been live together for ten seconds' }
    if (cost === undefined)
      return { ...unknown, reason: `not known: camera "${like}" has not been live for ten seconds` }
    const { load } = measured
    const comingCameras = this.#coming(measured)
    const headroom = headroomOf({ ...load, comingCameras }, cost, objectiveMs)
    return {
      ...headroom,
      reason: `with one more ${limits[headroom.limitedBy]}`,
      objectiveMs,
      now: {
        measuredAt: new Date(measured.atMs).toISOString(),
        cameras: load.cameras,
        comingCameras,
        cores: load.cores,
        instances: load.instances,
        p99Ms: load.p99Ms,
      },
      perCamera: { ...cost, cpuMsPerFrame: load.cpuMsPerFrame, runMs: load.runMs },
    }
  }

  /** Pictures a second of the cameras that there are and of those there is room for. */
  ofNode(): NodeCapacity {
    const cores = availableParallelism()
    const { cameras: more, now } = this.headroom()
    const live = [...this.deps.directory].filter(({ status }) => status.state === 'live')
    if (more === null || now === null || live.length === 0) return { cores, framesPerSecond: null }
    const each = live.reduce((sum, { framesPerSecond }) => sum + framesPerSecond, 0) / live.length
    return { cores, framesPerSecond: Math.round((now.cameras + more) * each) }
  }

  /**
   * Takes a camera on, if there is room for it or the policy does not ask; meanwhile it counts as one that is there.
   *
   * @returns what `take` does, and what is to be told of it.
   * @throws AdmissionRefusedError where the policy refuses it; then nothing was taken.
   */
  async admit<Taken>(
    { id, sampleFps }: Readonly<{ id: string; sampleFps: number }>,
    take: () => Promise<Taken>,
  ): Promise<Readonly<{ taken: Taken; warnings: readonly string[] }>> {
    const { admission, log } = this.deps
    if (admission === 'off') return { taken: await take(), warnings: [] }
    const { cameras, reason } = this.headroom({ sampleFps })
    const isTooMany = cameras === 0
    if (isTooMany && admission === 'refuse') throw new AdmissionRefusedError(id, reason)
    this.#underWay.add(id)
    try {
      const taken = await take()
      if (!isTooMany) return { taken, warnings: [] }
      log.warn({ cameraId: id, reason }, 'camera is taken, though there is no room for it')
      return {
        taken,
        warnings: [`there is no room for this camera, so that frames may be left out: ${reason}`],
      }
    } finally {
      this.#underWay.delete(id)
    }
  }

  #coming({ costs }: MeasuredLoad): number {
    const enabled = [...this.deps.directory]
      .filter(({ config }) => config.enabled)
      .map(({ config }) => config.id)
    return [...new Set([...enabled, ...this.#underWay])].filter((id) => !costs.has(id)).length
  }
}

/** Undefined for a camera that was not measured. */
function costOf(
  { costs }: MeasuredLoad,
  like: string | undefined,
  sampleFps: number | undefined,
): CameraCost | undefined {
  const asked =
    like === undefined ? [...costs.values()] : [costs.get(like)].filter((cost) => cost !== undefined)
  if (asked.length === 0) return undefined
  const mean = (of: keyof CameraCost) => asked.reduce((sum, cost) => sum + cost[of], 0) / asked.length
  return { framesPerSecond: sampleFps ?? mean('framesPerSecond'), decoderCores: mean('decoderCores') }
}
