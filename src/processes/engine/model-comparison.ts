import type { CameraConfig } from '../../config/camera.js'
import { nowMs } from '../../lifecycle/clock.js'
import { atMost } from '../../lifecycle/delay.js'
import { type ModelAgreement, agreementOf, type FoundTwice } from '../../vision/agreement.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { EngineModel } from './engine-model.js'
import { refit } from './refit.js'

/** From one frame that is compared to the next: the cameras are to notice nothing. */
const everyMs = 500

export type ComparisonLimits = Readonly<{
  /** Most that are compared. */
  frames: number
  /** Longest that it goes on. */
  forMs: number
}>

/** What two models said of the same frames, and why one of them said nothing; empty where they spoke. */
export type ComparedFrames = Omit<ModelAgreement, 'agreement'> & Readonly<{ failure: string }>

type Pair = { before?: readonly Detection[]; after?: readonly Detection[] }

/** Gives a copy of some frames of the cameras to the model that is tried, while the one that works answers them. */
export class ModelComparison {
  readonly #pairs: FoundTwice[] = []
  readonly #open = new Map<string, Pair>()
  /** Frames that the tried model has for comparison alone, also once nothing is compared any more. */
  readonly #copies = new Set<string>()
  /** Cameras that have frames, and those of them that have had their turn. */
  readonly #cameras = new Set<string>()
  readonly #round = new Set<string>()
  #lastMs = -Infinity
  #failure = ''
  #isOver = false
  #end: () => void = () => undefined
  readonly #ended = new Promise<void>((resolve) => (this.#end = resolve))

  constructor(
    readonly works: EngineModel,
    readonly tried: EngineModel,
    readonly limits: ComparisonLimits,
  ) {}

  /** Resolves when there are as many frames as are wanted, time is up, or the tried model fails. */
  async compared(): Promise<ComparedFrames> {
    await atMost(this.limits.forMs, this.#ended)
    this.stop()
    const { agreement: _, ...counts } = agreementOf(this.#pairs)
    return { ...counts, failure: this.#failure }
  }

  /** No frame is compared any more. */
  stop(): void {
    this.#isOver = true
    this.#open.clear()
    this.#end()
  }

  /** A frame is about to be given to the model that works: it may be copied. */
  offered(frame: Frame, camera: CameraConfig): void {
    if (!this.#isDue(frame)) return
    this.#lastMs = nowMs()
    this.#round.add(frame.cameraId)
    const key = keyOf(frame)
    this.#open.set(key, {})
    this.#copies.add(key)
    const { works, tried } = this
    const copy = { ...frame, rgbHwc: frame.rgbHwc.slice(0) }
    if (tried.takesFramesOf(works)) return tried.detector.offer(copy)
    refit(copy, camera, [works.info.format, tried.info.format], tried.pool.take()).then(
      (fitted) => tried.detector.offer(fitted),
      (error: unknown) => {
        this.#copies.delete(key)
        this.#open.delete(key)
        this.#fail(`a frame could not be fitted to it: ${String(error)}`)
      },
    )
  }

  /** The model that works has answered a frame, or not: without detections. */
  worked(frame: Frame, detections?: readonly Detection[]): void {
    this.#answered(keyOf(frame), 'before', detections)
  }

  /**
   * The tried model has answered a frame, or not: without detections.
   *
   * @param failure - why not, where it failed.
   * @returns whether that was a copy; else it is the frame of a camera.
   */
  took(frame: Frame, detections?: readonly Detection[], failure?: string): boolean {
    const key = keyOf(frame)
    if (!this.#copies.delete(key)) return false
    this.tried.pool.give(frame.rgbHwc)
    this.#answered(key, 'after', detections)
    if (failure !== undefined) this.#fail(failure)
    return true
  }

  /** The tried model cannot be used. */
  #fail(reason: string): void {
    if (this.#isOver) return
    this.#failure = reason
    this.#end()
  }

  #answered(key: string, by: keyof Pair, detections: readonly Detection[] | undefined): void {
    const pair = this.#open.get(key)
    if (pair === undefined) return
    if (detections === undefined) {
      this.#open.delete(key)
      return
    }
    pair[by] = detections
    const { before, after } = pair
    if (before === undefined || after === undefined) return
    this.#open.delete(key)
    this.#pairs.push({ before, after })
    if (this.#pairs.length >= this.limits.frames) this.#end()
  }

  /** Cameras take turns; one whose turn it is and that has no frames is not waited for. */
  #isDue({ cameraId, quality }: Frame): boolean {
    if (this.#isOver || quality === 'suspect') return false
    this.#cameras.add(cameraId)
    const sinceMs = nowMs() - this.#lastMs
    if (sinceMs < everyMs) return false
    if (this.#round.size >= this.#cameras.size || sinceMs >= 2 * everyMs) this.#round.clear()
    return !this.#round.has(cameraId)
  }
}

function keyOf({ cameraId, seq }: Pick<Frame, 'cameraId' | 'seq'>): string {
  return `${cameraId}/${seq}`
}
