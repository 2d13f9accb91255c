import type { EngineLoads } from '../../cameras/engine-loads.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type { DetectorInfo } from '../../detector/camera-detector.js'
import type { CameraShapes } from '../../detector/input-size.js'
import type { Log } from '../../lifecycle/log.js'
import type { OwnMessage } from '../child-messages.js'
import type { DeviceStates } from '../device-states.js'
import { EngineProcess } from '../engine/engine-process.js'
import type { EngineSetup, FromEngine, ToEngine } from '../engine/protocol.js'
import { ProviderTrials } from './provider-trials.js'

/** Longest for the frames that are in the engines: cameras end at once, so it is a run or two. */
const drainAtMostMs = 10_000

export type EnginesDeps = Readonly<{
  /** GPU of each engine, by its index. */
  engineDevices: readonly number[]
  engineSetup: Omit<EngineSetup, 'index' | 'deviceId'>
  devices: DeviceStates
  /** Shared with the directory. */
  loads: EngineLoads
  /** Asked where the shapes of the cameras decide the size of the input. */
  lookAtCameras: () => Promise<CameraShapes>
  log: Log
}>

/** What the engines that have cameras tell, by their index. */
export type EnginesEvents = Readonly<{
  /** A detector runs: cameras can be given to the engine. Called again after every restart. */
  ready(index: number, detector: DetectorInfo): void
  /** It is gone; whatever was in it is lost. */
  gone(index: number, reason: string): void
  message(index: number, message: Exclude<OwnMessage<FromEngine>, { type: 'wantsCameraShapes' }>): void
  result(index: number, result: EngineResult): void
}>

/**
 * The engines of a service, and what becomes of one whose GPU does not do its work.
 *
 * Where others have GPUs that work, it is *left*: it ends, its cameras go to them, and it is started again on its GPU alone, later and later
 * (`EngineProcess`, `DeviceStates`). Where nobody else would take them, it keeps its cameras and runs on the next provider; now and then a
 * *trial* without cameras is started beside it, which takes its place where the GPU works again (`ProviderTrials`).
 */
export class Engines {
  /** By index. One may take the place of another. */
  readonly all: EngineProcess[]
  /** Resolves when an engine is gone for the first time. */
  readonly firstEnd: Promise<void>
  readonly #trials: ProviderTrials
  /** What all are told, whenever they start. */
  #cameraShapes: Promise<CameraShapes> | undefined
  #isRefusing = false
  #model: Pick<EngineSetup, 'ensemble' | 'repositories'>
  /** Whether the ensemble is being changed: no engine takes the place of another meanwhile. */
  isChanging: () => boolean = () => false
  #ended: () => void = () => undefined

  constructor(
    readonly deps: EnginesDeps,
    readonly events: EnginesEvents,
  ) {
    this.#model = deps.engineSetup
    this.firstEnd = new Promise<void>((resolve) => (this.#ended = resolve))
    this.all = deps.engineDevices.map((deviceId, index) => this.#create(index, deviceId))
    this.#trials = new ProviderTrials({
      firstMs: deps.engineSetup.inference.retrySeconds * 1_000,
      engines: () => this.all,
      trialOf: ({ setup }) => this.#create(setup.index, setup.deviceId, true),
      mayGoOver: (to) => !this.isChanging() && to.model === this.#model,
      goOver: (from, to) => this.#goOver(from, to),
      log: deps.log,
    })
  }

  /** Inference instances of those that are ready. */
  get instances(): number {
    return this.all.reduce(
      (sum, { ready, health }) => sum + (ready ? (health.detector?.instances ?? 0) : 0),
      0,
    )
  }

  /** Resolves when all have been ready or are held back. @throws GantryError when the model cannot be used */
  async start(): Promise<void> {
    await Promise.all(this.all.map((engine) => engine.start()))
  }

  /** To be called when one has told where its models run. */
  look(): void {
    this.#trials.look()
  }

  /** Those that have cameras, or could have: not left, and not failed for good. */
  get serving(): readonly EngineProcess[] {
    return this.all.filter((engine) => !engine.left && !engine.failed)
  }

  /** The ensemble that engines are started with from now on. */
  startWith(model: Pick<EngineSetup, 'ensemble' | 'repositories'>): void {
    this.#model = model
    for (const engine of this.all) engine.model = model
  }

  /** Another detector analyses the cameras of the engine from now on. */
  uses(index: number, detector: DetectorInfo): void {
    this.all[index]?.uses(detector)
    this.deps.loads.runs(index, detector.instances)
  }

  tellAll(message: ToEngine): void {
    for (const engine of this.all) engine.tell(message)
  }

  /** From now on none takes the place of another. */
  refuse(): void {
    this.#isRefusing = true
  }

  /** Idempotent, never rejects. */
  async stop(leftMs: number): Promise<void> {
    const withinMs = Math.min(leftMs, drainAtMostMs)
    await Promise.all([this.#trials.stop(), ...this.all.map((engine) => engine.stop(withinMs))])
  }

  /** @param isTrial - it stands beside the one of that number, and what it says does not count until it is in its place. */
  #create(index: number, deviceId: number, isTrial = false): EngineProcess {
    const { engineSetup, loads, devices, log } = this.deps
    const counts = () => !isTrial || this.all[index] === engine
    const engine: EngineProcess = new EngineProcess(
      { ...engineSetup, index, deviceId },
      loads.isMeasured
        ? {
            hasOthers: () =>
              this.all.some((other) => other.setup.deviceId !== deviceId && !other.left && !other.failed),
            failed: () => {
              loads.left(index)
              return devices.failed(deviceId)
            },
          }
        : undefined,
      {
        ready: (detector) => {
          if (counts()) this.#ready(index, detector)
        },
        gone: (reason) => {
          if (counts()) this.#gone(index, reason)
        },
        message: (message) => {
          if (message.type === 'wantsCameraShapes') this.#tellShapes(engine)
          else if (counts()) this.events.message(index, message)
        },
        result: (result) => this.events.result(index, result),
      },
      log,
      isTrial,
    )
    engine.model = this.#model
    return engine
  }

  /** What is in the first engine is finished and published; its cameras connect anew in the second. */
  async #goOver(from: EngineProcess, to: EngineProcess): Promise<void> {
    const { index } = from.health
    const detector = to.health.detector
    this.deps.log.info(
      { engine: index, provider: detector?.provider },
      'execution provider runs the models again, the cameras go over to it',
    )
    await from.stop(drainAtMostMs)
    if (this.#isRefusing || detector === null) return to.stop(0)
    this.#gone(index, 'it goes over to another execution provider')
    this.all[index] = to
    this.#ready(index, detector)
  }

  #ready(index: number, detector: DetectorInfo): void {
    const { loads, devices } = this.deps
    const { instances, deviceId } = detector
    loads.runs(index, instances)
    if (deviceId !== undefined) devices.works(deviceId)
    this.events.ready(index, detector)
  }

  #gone(index: number, reason: string): void {
    this.#ended()
    this.events.gone(index, reason)
  }

  #tellShapes(engine: EngineProcess): void {
    this.#cameraShapes ??= this.deps.lookAtCameras()
    void this.#cameraShapes.then((shapes) => engine.tellCameraShapes(shapes))
  }
}
