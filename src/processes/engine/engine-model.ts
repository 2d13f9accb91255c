import { type ProviderUse, ProviderUses } from '../../backends/onnxruntime/provider-uses.js'
import type { InferenceConfig } from '../../config/inference.js'
import type { CameraDetector, DetectorInfo, DetectorListener } from '../../detector/camera-detector.js'
import type { CameraShapes } from '../../detector/input-size.js'
import { createCameraDetector } from '../../ensemble/create-camera-detector.js'
import type { CountedStatistics } from '../../runtime/counted-statistics.js'
import type { Log } from '../../lifecycle/log.js'
import { atMost } from '../../lifecycle/delay.js'
import { type Frame, frameBytes } from '../../vision/frame.js'
import { FramePool } from '../../vision/frame-pool.js'
import { EngineSteps } from './step-models.js'

/** Idle frame buffers kept for the next burst. */
const pooledFrames = 64

export type EngineModelOptions = Readonly<{
  /** That of the ensemble first. */
  repositories: readonly string[]
  ensemble: string
  inference: InferenceConfig
  deviceId: number
  allowJsBackends: boolean
  cameraShapes: () => Promise<CameraShapes>
  /** Nothing runs any more on a GPU in this process. */
  onDeviceFailed: (reason: string) => void
  /** A run does not end, and only the end of the process ends it. */
  onHung: (reason: string) => void
  log: Log
}>

/** A detector that is loaded, with what belongs to it: the models of its steps, and where they run. */
export class EngineModel {
  /** Frames of cameras that are in it. */
  #inside = 0
  #onEmpty: () => void = () => undefined

  private constructor(
    readonly ensemble: string,
    readonly detector: CameraDetector,
    /** Buffers of its frames; shared with a model whose frames have as many bytes. */
    readonly pool: FramePool,
    readonly uses: ProviderUses,
    readonly steps: EngineSteps,
  ) {}

  /**
   * @param listenerOf - who is told of its frames. Nothing is told before it is open but that an instance ended.
   * @param before - whose buffers it may use.
   * @throws GantryError when the ensemble cannot be used; then nothing of it is left.
   */
  static async open(
    options: EngineModelOptions,
    listenerOf: (model: () => EngineModel | undefined) => DetectorListener,
    before: EngineModel | undefined,
  ): Promise<EngineModel> {
    const { ensemble, log } = options
    const uses = new ProviderUses(log)
    const steps = new EngineSteps({ ...options, uses })
    let opened: EngineModel | undefined
    try {
      const detector = await createCameraDetector({
        ...options,
        uses,
        steps,
        listener: listenerOf(() => opened),
      })
      const bytes = frameBytes(detector.info.format)
      const pool = before?.pool.bytes === bytes ? before.pool : new FramePool(bytes, pooledFrames)
      opened = new EngineModel(ensemble, detector, pool, uses, steps)
      return opened
    } catch (error) {
      await steps.stop(0)
      throw error
    }
  }

  get info(): DetectorInfo {
    return this.detector.info
  }

  get providers(): readonly ProviderUse[] {
    return this.uses.all
  }

  /** Whether frames of the other's sources can be given to this one. */
  takesFramesOf({ info: { format } }: EngineModel): boolean {
    const own = this.info.format
    return (
      own.align === format.align &&
      own.input.widthPx === format.input.widthPx &&
      own.input.heightPx === format.input.heightPx
    )
  }

  /** Takes a frame of a camera; one call of {@link left} follows its end. */
  offer(frame: Frame): void {
    this.#inside += 1
    this.detector.offer(frame)
  }

  left(): void {
    this.#inside -= 1
    if (this.#inside === 0) this.#onEmpty()
  }

  /** Resolves when no frame of a camera is in it, or after `withinMs`. */
  async empty(withinMs: number): Promise<void> {
    if (this.#inside > 0) await atMost(withinMs, new Promise<void>((resolve) => (this.#onEmpty = resolve)))
  }

  /** What its models did since they were loaded. */
  statistics(): readonly CountedStatistics[] {
    return [...this.detector.statistics(), ...this.steps.statistics()]
  }

  /** Idempotent, never rejects. */
  async stop(drainMs: number): Promise<void> {
    await this.detector.stop(drainMs)
    await this.steps.stop(0)
  }
}
