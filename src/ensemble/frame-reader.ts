import type { SizePx } from '../frames/letterbox.js'
import { Candidates } from './heads/candidates.js'
import { createHead } from './heads/create-head.js'
import type { Head, HeadPlan } from './heads/head.js'
import { suppress } from './nms.js'

export type DetectionLimits = Readonly<{
  scoreThreshold: number
  iouThreshold: number
  maxDetections: number
}>

/** An output of a run, whole batch. */
export type HeadOutput = Readonly<{ values: Float32Array; shape: readonly number[] }>

/** Candidates and which of them are detections, best first; valid until the next frame is read. */
export type FrameFindings = Readonly<{ found: Candidates; kept: readonly number[] }>

/** Turns the outputs of a detector into the boxes of a frame, in model-input pixels. */
export class FrameReader {
  readonly #candidates = new Candidates()
  #head: Head | undefined
  #shapes = ''

  constructor(
    readonly plan: HeadPlan,
    readonly input: SizePx,
    readonly limits: DetectionLimits,
  ) {}

  /**
   * @param outputs - in the order of the plan.
   * @throws TensorShapeError
   */
  read(outputs: readonly HeadOutput[], frame: number): FrameFindings {
    const { scoreThreshold, iouThreshold, maxDetections } = this.limits
    const head = this.#headFor(outputs)
    const found = this.#candidates
    found.clear()
    head.decode(
      outputs.map((output) => output.values),
      frame,
      scoreThreshold,
      found,
    )
    const kept = suppress(found, {
      iouThreshold,
      maxKept: maxDetections,
      withinClasses: head.needsNms,
      exclusive: this.plan.exclusive,
    })
    return { found, kept }
  }

  /** Models with NMS inside may give another number of boxes in every run. */
  #headFor(outputs: readonly HeadOutput[]): Head {
    const shapes = outputs.map((output) => output.shape.join()).join(';')
    if (this.#head === undefined || shapes !== this.#shapes) {
      this.#head = createHead(
        this.plan,
        this.input,
        outputs.map((output) => output.shape),
      )
      this.#shapes = shapes
    }
    return this.#head
  }
}
