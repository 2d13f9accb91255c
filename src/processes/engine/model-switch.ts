import type { ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import { EngineUnavailableError } from '../../cameras/engine-errors.js'
import type { CameraConfig } from '../../config/camera.js'
import type { DetectorInfo, DetectorListener, DetectorResult } from '../../detector/camera-detector.js'
import type { StepFailures } from '../../detector/later-steps.js'
import { InternalError } from '../../errors.js'
import { Turns } from '../../lifecycle/turns.js'
import { addUp, type CountedStatistics } from '../../runtime/counted-statistics.js'
import type { ShedCause } from '../../vision/accounting.js'
import type { Frame } from '../../vision/frame.js'
import { type ComparedFrames, ModelComparison } from './model-comparison.js'
import { EngineModel, type EngineModelOptions } from './engine-model.js'
import type { EngineSetup, ModelQuestion } from './protocol.js'

/** Longest that frames in a model which is let go may take to end. */
const emptyWithinMs = 10_000

export type ModelSwitchHost = Readonly<{
  options: Omit<EngineModelOptions, 'ensemble' | 'repositories'>
  /** A frame of a camera has ended. */
  detected(model: EngineModel, frame: Frame, result: DetectorResult): void
  superseded(frame: Frame): void
  shed(frame: Frame, cause: ShedCause, error?: unknown): void
  instanceExited(error: unknown): void
  hung(error: unknown): void
  /** Brings the cameras to the model, while that is the one in use. */
  goOver(model: EngineModel): Promise<void>
  /** The model that is tried fails. */
  triedFails(reason: string): void
}>

/**
 * The model that analyses the cameras, and beside it for a while one that is to take its place: loaded, compared with it on copies of frames,
 * tried on the cameras, and then kept or let go. Whatever becomes of the second, the first stays loaded until then.
 */
export class ModelSwitch {
  readonly #turns = new Turns()
  #works: EngineModel | undefined
  #tried: EngineModel | undefined
  #inUse: EngineModel | undefined
  #comparison: ModelComparison | undefined
  /** Of models that were let go: counters never fall. */
  #ended: readonly CountedStatistics[] = []
  #stopped = false

  constructor(readonly host: ModelSwitchHost) {}

  /** @throws GantryError when the ensemble cannot be used. */
  async start(setup: Pick<EngineSetup, 'ensemble' | 'repositories'>): Promise<void> {
    this.#works = await this.#open(setup)
    this.#inUse = this.#works
  }

  /** The one that cameras are given to. */
  get inUse(): EngineModel {
    if (!this.#inUse) throw new InternalError('engine got a camera before its detector was ready')
    return this.#inUse
  }

  get isOpen(): boolean {
    return this.#inUse !== undefined
  }

  /** Where the models of the one in use run. */
  get providers(): readonly ProviderUse[] {
    return this.#inUse?.providers ?? []
  }

  offer(model: EngineModel, frame: Frame, camera: CameraConfig): void {
    if (model === this.#works) this.#comparison?.offered(frame, camera)
    model.offer(frame)
  }

  /** A buffer comes back. */
  give(buffer: ArrayBuffer): void {
    const model = [this.#works, this.#tried].find((each) => each?.pool.bytes === buffer.byteLength)
    model?.pool.give(buffer)
  }

  removeCamera(cameraId: string): void {
    for (const model of this.#all) model.detector.removeCamera(cameraId)
  }

  /** What models did since the engine began. */
  statistics(): readonly CountedStatistics[] {
    return [...this.#all.flatMap((model) => model.statistics()), ...this.#ended]
  }

  takeStepFailures(): readonly StepFailures[] {
    return this.#all.flatMap((model) => model.detector.takeStepFailures())
  }

  /**
   * Does one step of a change. Steps are done one after another; a comparison, and cameras on their way to the other model, are cut short by
   * the next one.
   *
   * @throws GantryError when an ensemble cannot be used, and for a step that does not follow the one before.
   */
  async answer(question: ModelQuestion): Promise<DetectorInfo | ComparedFrames> {
    this.#comparison?.stop()
    if (question.type === 'useEnsemble') this.#inUse = question.tried ? this.#needTried() : this.#works
    return this.#turns.take('', () => this.#step(question))
  }

  /** No step is begun any more, and none waited for. */
  refuse(): void {
    this.#stopped = true
    this.#comparison?.stop()
  }

  /** Idempotent, never rejects. */
  async stop(drainMs: number): Promise<void> {
    this.refuse()
    await Promise.all(this.#all.map((model) => model.stop(drainMs)))
  }

  async #step(question: ModelQuestion): Promise<DetectorInfo | ComparedFrames> {
    if (this.#stopped) throw new EngineUnavailableError('it stops')
    switch (question.type) {
      case 'openEnsemble': {
        if (this.#tried !== undefined) throw new InternalError('engine has a second ensemble already')
        const tried = await this.#open(question)
        if (this.#isStopped()) await tried.stop(0)
        else this.#tried = tried
        return tried.info
      }
      case 'compareEnsembles':
        this.#comparison = new ModelComparison(this.#needWorking(), this.#needTried(), question)
        return this.#comparison.compared()
      case 'useEnsemble': {
        const { inUse } = this
        await this.host.goOver(inUse)
        return inUse.info
      }
      case 'settleEnsemble':
        return this.#settle(question.keeps)
      default:
        throw new InternalError(`engine does not know ${JSON.stringify(question satisfies never)}`)
    }
  }

  async #settle(keeps: boolean): Promise<DetectorInfo> {
    const works = this.#needWorking()
    const tried = this.#tried
    if (tried === undefined) return works.info
    const [stays, goes] = keeps ? [tried, works] : [works, tried]
    this.#inUse = stays
    await this.host.goOver(stays)
    await goes.empty(emptyWithinMs)
    this.#works = stays
    this.#tried = undefined
    await goes.stop(emptyWithinMs)
    this.#ended = addUp([
      ...this.#ended,
      ...goes.statistics().map((counts) => ({ ...counts, pending: 0, sizes: [] })),
    ])
    return stays.info
  }

  #open(setup: Pick<EngineSetup, 'ensemble' | 'repositories'>): Promise<EngineModel> {
    const { ensemble, repositories } = setup
    const options = { ...this.host.options, ensemble, repositories }
    return EngineModel.open(options, (model) => this.#listener(model), this.#works)
  }

  #listener(model: () => EngineModel | undefined): DetectorListener {
    const { host } = this
    return {
      detected: (frame, result) => {
        const own = this.#left(model(), frame, result)
        if (own !== undefined) host.detected(own, frame, result)
      },
      superseded: (frame) => {
        if (this.#left(model(), frame) !== undefined) host.superseded(frame)
      },
      shed: (frame, cause, error) => {
        const own = this.#left(model(), frame, undefined, cause === 'stopping' ? undefined : error)
        if (own === undefined) return
        host.shed(frame, cause, error)
        if (own === this.#tried && cause !== 'stopping')
          host.triedFails(`a run failed: ${textOf(error ?? cause)}`)
      },
      instanceExited: (error) => {
        host.instanceExited(error)
        const own = model()
        if (own !== undefined && own === this.#tried) host.triedFails(`an instance exited: ${textOf(error)}`)
      },
      hung: (error) => host.hung(error),
    }
  }

  /** A frame has ended. @returns the model that had it for a camera; nothing where it was a copy. */
  #left(
    model: EngineModel | undefined,
    frame: Frame,
    result?: DetectorResult,
    error?: unknown,
  ): EngineModel | undefined {
    const comparison = this.#comparison
    if (model !== undefined && model === comparison?.tried) {
      const failure = error === undefined ? undefined : `a run failed: ${textOf(error)}`
      if (comparison.took(frame, result?.detections, failure)) return undefined
    }
    model?.left()
    if (model !== undefined && model === comparison?.works) comparison.worked(frame, result?.detections)
    return model
  }

  #needTried(): EngineModel {
    if (this.#tried === undefined) throw new InternalError('engine has no second ensemble')
    return this.#tried
  }

  #needWorking(): EngineModel {
    if (this.#works === undefined) throw new InternalError('engine has no ensemble yet')
    return this.#works
  }

  /** It may have been stopped while something was waited for. */
  #isStopped(): boolean {
    return this.#stopped
  }

  get #all(): readonly EngineModel[] {
    return [this.#works, this.#tried].filter((model) => model !== undefined)
  }
}

const steps: readonly string[] = [
  'openEnsemble',
  'compareEnsembles',
  'useEnsemble',
  'settleEnsemble',
] satisfies ModelQuestion['type'][]

/** Whether a question is a step of a change of the ensemble. */
export function isModelQuestion(question: Readonly<{ type: string }>): question is ModelQuestion {
  return steps.includes(question.type)
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}
