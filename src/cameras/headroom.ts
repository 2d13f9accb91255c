/** How much of what cameras need is used now, by what the service measured of itself in the last half minute. */
export type ServiceLoad = Readonly<{
  /** Cameras that are measured. */
  cameras: number
  /** Cameras that are switched on and not measured yet: they are reckoned as if they were there. */
  comingCameras: number
  /** Cores that the service may use, and those that are busy, with other programs of the machine but without what gives way to them. */
  cores: Readonly<{ all: number; busy: number }>
  /** CPU time of engines and control for each analysed frame, decoders left out. */
  cpuMsPerFrame: number
  /** Inference instances, and how many of them are busy on average. */
  instances: Readonly<{ all: number; busy: number }>
  /** What a frame takes of an instance; of a batch its part. */
  runMs: number
  /** p99 of capture to publish of the camera that has the worst. */
  p99Ms: number
}>

/** What a camera takes. */
export type CameraCost = Readonly<{
  /** Frames that are analysed in a second. */
  framesPerSecond: number
  /** Cores that its decoder takes. */
  decoderCores: number
}>

/** What ends first. */
export type HeadroomLimit = 'cpu' | 'instances' | 'latency'

export type Headroom = Readonly<{
  /** Further cameras that can be had with all of them, and those before, within the objective. */
  cameras: number
  /** What one more would break. */
  limitedBy: HeadroomLimit
  /** With that many more. */
  predicted: Readonly<{ busyCores: number; busyInstances: number; p99Ms: number }>
}>

/** Of cores and of instances; what is left goes to what comes and goes, and the newest frame is waited for by none. */
const usable = 0.97

const mostCameras = 1_000

/** `ln 100`: one wait in a hundred is longer. */
const onePercent = Math.log(100)

/**
 * How many more cameras of a kind hold an objective of latency.
 *
 * Cores and instances are shared out by what each frame and each decoder takes of them now. Latency is that of now and what the waits grow
 * by: cameras send at their own regular pace, so waits are those of N independent periodic sources before one server, which are far
 * shorter than those of arrivals at random (J. Roberts, U. Mocci, J. Virtamo: Broadband Network Teletraffic, 1996, N·D/D/1;
 * P(wait > x services) ≈ exp(-2x(x/N + 1 - load)) for high load).
 *
 * @param objectiveMs - for the p99 of capture to publish.
 */
export function headroomOf(load: ServiceLoad, kind: CameraCost, objectiveMs: number): Headroom {
  let last = at(load, kind, 0)
  for (let more = 1; more <= mostCameras; more += 1) {
    const next = at(load, kind, more)
    const limitedBy = broken(next, load, objectiveMs)
    if (limitedBy !== undefined) return { cameras: more - 1, limitedBy, predicted: last }
    last = next
  }
  return { cameras: mostCameras, limitedBy: 'cpu', predicted: last }
}

function broken(
  { busyCores, busyInstances, p99Ms }: Headroom['predicted'],
  { cores, instances }: ServiceLoad,
  objectiveMs: number,
): HeadroomLimit | undefined {
  if (busyCores > usable * cores.all) return 'cpu'
  if (busyInstances > usable * instances.all) return 'instances'
  return p99Ms > objectiveMs ? 'latency' : undefined
}

/** With so many more cameras than those that are there, and those that come. */
function at(load: ServiceLoad, kind: CameraCost, more: number): Headroom['predicted'] {
  const added = load.comingCameras + more
  const framesPerSecond = added * kind.framesPerSecond
  const busyCores =
    load.cores.busy + added * kind.decoderCores + (framesPerSecond * load.cpuMsPerFrame) / 1_000
  const busyInstances = load.instances.busy + (framesPerSecond * load.runMs) / 1_000
  const shareOf = (cores: number, instances: number) =>
    Math.max(cores / load.cores.all, instances / load.instances.all)
  const serviceMs = load.runMs / load.instances.all
  const wait = (cameras: number, share: number) => serviceMs * waitedServices(cameras, share)
  const waits =
    wait(load.cameras + added, shareOf(busyCores, busyInstances)) -
    wait(load.cameras, shareOf(load.cores.busy, load.instances.busy))
  return { busyCores, busyInstances, p99Ms: load.p99Ms + Math.max(0, waits) }
}

/** The wait that one arrival in a hundred exceeds, in times of service, of so many periodic sources at a load of 0..1. */
export function waitedServices(sources: number, load: number): number {
  if (sources <= 0) return 0
  const idle = 1 - Math.min(1, load)
  return (sources / 2) * (Math.sqrt(idle ** 2 + (2 * onePercent) / sources) - idle)
}
