import type { Service } from '../../lifecycle/service.js'
import { EngineUnavailableError } from '../../cameras/engine-errors.js'
import type { EngineResult } from '../../cameras/engine-report.js'
import type { ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import type { EngineAnswers, EngineQuestion, EngineSetup, FromEngine, ToEngine } from './protocol.js'
import type { DetectorInfo } from '../../detector/camera-detector.js'
import type { CameraShapes } from '../../detector/input-size.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { EngineHealth } from '../../api/gantry.js'
import { readResult } from './result-frame.js'
import type { OwnMessage } from '../child-messages.js'
import type { EndOfProcess } from '../process-spec.js'
import { SupervisedProcess } from '../supervised-process.js'
import { gpuProvidersOf } from '../../backends/onnxruntime/providers.js'
import type { ErrorCode, ErrorRecord } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'

/** Longest an engine may load its model. */
const loadAtMostMs = 120_000

/**
 * The heap of an engine is small and short-lived: helper threads that collect it cost more in waking up than they save, and take the
 * cores from the instances (test/bench/service-overhead.bench.ts). The young generation would grow to 32 MB in each thread, of which a
 * frame leaves some 50 KB of garbage.
 */
const v8Flags = ['--single-threaded-gc', '--max-semi-space-size=1']

/** Every thread would get a heap of its own, with what ONNX Runtime gave back while it loaded. */
const env = { MALLOC_ARENA_MAX: '2' }

/** The GPU that an engine is bound to, beside engines on others. */
export type EngineDevice = Readonly<{
  /** Whether an engine on another GPU would take its cameras: then it need run nowhere else. */
  hasOthers(): boolean
  /** It fails: its cameras go to others. @returns in how many milliseconds it is to be tried again. */
  failed(): number
}>

export type EngineEvents = Readonly<{
  /** A detector runs: cameras can be given to the engine. Called again after every restart. */
  ready(detector: DetectorInfo): void
  /** The engine is gone; whatever was in it is lost. */
  gone(reason: string): void
  message(message: OwnMessage<FromEngine>): void
  /** Its bytes are views, which keep what came with them. */
  result(result: EngineResult): void
}>

/** So many ends within a minute that nothing explains are blamed on the GPU. */
const endsOfDevice = 2

/** One engine process under supervision. */
export class EngineProcess implements Service {
  readonly #process: SupervisedProcess<FromEngine, ToEngine>
  #detector: DetectorInfo | null = null
  #instancesReady: number | undefined
  #providers: readonly ProviderUse[] = []
  #setups = 0
  /** It runs on its GPU or not at all. */
  #isBound = false
  /** What it is started with from the next time on; another one takes its place while it runs (`useEnsemble`). */
  model: Pick<EngineSetup, 'ensemble' | 'repositories'>
  /** Its GPU failed, and has not worked since. */
  #left: Readonly<{ reason: string; untilMs: number }> | undefined

  /**
   * @param device - `undefined` for an engine that has no GPU of its own, or the only one.
   * @param isTrial - its first start is one, see `EngineSetup`: where that fails, nothing more is tried.
   */
  constructor(
    readonly setup: EngineSetup,
    readonly device: EngineDevice | undefined,
    readonly events: EngineEvents,
    readonly log: Log,
    isTrial = false,
  ) {
    this.model = setup
    this.#process = new SupervisedProcess<FromEngine, ToEngine>(
      {
        title: 'engine',
        logFields: { engine: setup.index },
        entry: entryPath(import.meta.url, './main.js'),
        v8Flags,
        env,
        setup: () => ({ type: 'setup', setup: this.#setupNow(isTrial) }) satisfies ToEngine,
        loadAtMostMs,
        triesOnce: isTrial,
        endsStart: (failure) => !isOfDevice(failure) || !(this.#isBound || this.#hasOthers()),
        unavailable: (reason) => new EngineUnavailableError(reason),
      },
      {
        ready: ({ detector, providers }) => this.#ready(detector, providers),
        gone: (reason) => this.#gone(reason),
        startsAgainIn: (end) => this.#heldBack(end),
        message: (message) => this.#receive(message),
        bytes: (body) => events.result(readResult(body)),
      },
      log,
    )
  }

  get health(): Omit<EngineHealth, 'cameras'> {
    const { index, deviceId } = this.setup
    const health = this.#process.health
    const detector = this.#detector && {
      ...this.#detector,
      instancesReady: this.#instancesReady ?? this.#detector.instances,
    }
    const own = { index, device: this.device === undefined ? null : deviceId, detector }
    if (this.#left === undefined || health.state === 'stopped') return { ...health, ...own }
    return { ...health, ...own, state: 'left', reason: leftText(deviceId, this.#left) }
  }

  /** Its GPU failed: until that works again, cameras are elsewhere. */
  get left(): boolean {
    return this.#left !== undefined
  }

  /** Where its models run, and where not though they should; none while it is away. */
  get providers(): readonly ProviderUse[] {
    return this.#providers
  }

  get ready(): boolean {
    return this.#process.ready
  }

  /** It could not be started, and is not started again. */
  get failed(): boolean {
    return this.#process.health.state === 'failed'
  }

  /** Resolves once the first detector runs. @throws GantryError what the engine says when its model cannot be used. */
  start(): Promise<void> {
    return this.#process.start()
  }

  /** Does nothing while the engine is away: what it must know is told again when it is ready. @returns whether it was told. */
  tell(message: ToEngine): boolean {
    return this.#process.tell(message)
  }

  /** The answer to `wantsCameraShapes`, which an engine waits for before it is ready. */
  tellCameraShapes(shapes: CameraShapes): void {
    this.#process.tellStarting({ type: 'cameraShapes', shapes })
  }

  /** @throws EngineUnavailableError `GANTRY_ENGINE_UNAVAILABLE` when the engine is away, dies or does not answer. */
  ask<Q extends EngineQuestion>(question: Q, atMostMs?: number): Promise<EngineAnswers[Q['type']]> {
    return this.#process.ask(question, atMostMs) as Promise<EngineAnswers[Q['type']]>
  }

  /** Another detector analyses its cameras from now on. */
  uses(detector: DetectorInfo): void {
    this.#detector = detector
    this.#instancesReady = undefined
  }

  /** Idempotent, never rejects. Asks the engine to drain, then kills it. */
  stop(drainMs: number): Promise<void> {
    return this.#process.stop(drainMs)
  }

  /** Where others would take its cameras, it does not fall back on the CPU. The first start of a trial alone is one. */
  #setupNow(isTrial: boolean): EngineSetup {
    this.#setups += 1
    this.#isBound = this.#hasOthers()
    const { ensemble, repositories } = this.model
    const setup = { ...this.setup, ensemble, repositories, isTrial: isTrial && this.#setups === 1 }
    if (!this.#isBound) return setup
    const { inference } = setup
    return { ...setup, inference: { ...inference, providers: [...gpuProvidersOf(inference.providers)] } }
  }

  #hasOthers(): boolean {
    return this.device?.hasOthers() ?? false
  }

  #heldBack({ reason, failure, deaths }: EndOfProcess): number | undefined {
    if (this.device === undefined) return undefined
    if (failure === undefined ? deaths < endsOfDevice : !isOfDevice(failure)) return undefined
    // The last one is started again at once, as if there had never been others.
    if (!this.#hasOthers()) return this.#isBound ? 0 : undefined
    const forMs = this.device.failed()
    this.#left = { reason: failure?.message ?? reason, untilMs: nowMs() + forMs }
    return forMs
  }

  #receive(message: OwnMessage<FromEngine>): void {
    if (message.type === 'beat') {
      const { providers, instancesReady, sizes, scoreFault } = message.beat
      this.#providers = providers
      this.#instancesReady = instancesReady
      if (this.#detector !== null)
        this.#detector = { ...this.#detector, ...(sizes && { sizes }), ...(scoreFault && { scoreFault }) }
    }
    this.events.message(message)
  }

  #gone(reason: string): void {
    this.#providers = []
    this.events.gone(reason)
  }

  #ready(detector: DetectorInfo, providers: readonly ProviderUse[]): void {
    this.#left = undefined
    this.#detector = detector
    this.#instancesReady = undefined
    this.#providers = providers
    this.log.info({ engine: this.setup.index, ...describe(detector) }, 'engine ready')
    this.events.ready(detector)
  }
}

/** Whether an engine ended for its GPU: that could not be used, failed, or let a run hang. */
function isOfDevice(failure: ErrorRecord | undefined): boolean {
  return failure !== undefined && codesOfDevice.includes(failure.code)
}

const codesOfDevice: readonly ErrorCode[] = [
  'GANTRY_PROVIDER_UNAVAILABLE',
  'GANTRY_PROVIDER_FAILS',
  'GANTRY_DEVICE_FAILED',
  'GANTRY_INFERENCE_FAILED',
]

function leftText(
  device: number,
  { reason, untilMs }: Readonly<{ reason: string; untilMs: number }>,
): string {
  const inSeconds = Math.ceil((untilMs - nowMs()) / 1_000)
  return `${reason}; GPU ${device} is tried again ${inSeconds > 0 ? `in ${inSeconds} s` : 'now'}`
}

function describe({ model, provider, deviceId, instances, maxBatchSize, head, format }: DetectorInfo) {
  const input = `${format.input.widthPx}x${format.input.heightPx}`
  return {
    model: `${model.name}/${model.version}`,
    head,
    input,
    provider,
    ...(deviceId !== undefined && { gpu: deviceId }),
    instances,
    maxBatchSize,
  }
}
