import type { SizePx } from '../vision/letterbox.js'
import { Candidates } from './heads/candidates.js'
import { checkGrids } from './heads/check-grids.js'
import { createHead } from './heads/create-head.js'
import type { Head, HeadPlan } from './heads/head.js'
import { suppress } from './nms.js'
import { ScoreWatch, type StrangeScores } from './strange-scores.js'

/** All scores are looked at in one frame of so many: it takes as long as to read the boxes. */
const lookEvery = 100

export type DetectionLimits = Readonly<{
  scoreThreshold: number
  iouThreshold: number
  maxDetections: number
}>

/** An output of a run, whole batch. */
export type HeadOutput = Readonly<{ values: Float32Array; shape: readonly number[] }>

/**
 * Candidates, with the line of their label as class, and which of them are detections, best first; valid until the next frame is read.
 * `belowFirst` is how many were left out for a class with a number below that of the first label, `unsound` how many for a score outside of
 * 0..1 or a place that is no number; `strange` is what the model gave in the place of scores, in any frame so far.
 */
export type FrameFindings = Readonly<{
  found: Candidates
  kept: readonly number[]
  belowFirst: number
  unsound: number
  strange: StrangeScores | undefined
}>

/** Turns the outputs of a detector into the boxes of a frame, in model-input pixels. */
export class FrameReader {
  readonly #candidates = new Candidates()
  #head: Head | undefined
  #shapes = ''
  readonly #lineOf: (classId: number) => number
  #belowFirst = 0
  readonly #watch: ScoreWatch
  #frames = 0

  constructor(
    readonly plan: HeadPlan,
    readonly input: SizePx,
    readonly limits: DetectionLimits,
    /** The model was exported with another size, and says only by its run whether its outputs follow the input. */
    readonly isNewSize = false,
  ) {
    const { lines = [], options } = plan
    this.#watch = ScoreWatch.of(plan)
    const first = options?.firstClass ?? 0
    const lowest = plan.columns === undefined ? first : 0
    this.#lineOf = (classId) => {
      if (classId < lowest) this.#belowFirst += 1
      return lines[classId] ?? classId - first
    }
  }

  /**
   * @param outputs - in the order of the plan.
   * @throws TensorShapeError
   */
  read(outputs: readonly HeadOutput[], frame: number): FrameFindings {
    const { scoreThreshold, iouThreshold, maxDetections } = this.limits
    const head = this.#headFor(outputs)
    const found = this.#candidates
    found.clear()
    const values = outputs.map((output) => output.values)
    if (this.#frames++ % lookEvery === 0) this.#watch.look(values, head.scoreBlocks(frame))
    head.decode(values, frame, scoreThreshold, found)
    const unsound = this.#watch.keepSound(found)
    this.#belowFirst = 0
    found.mapClasses(this.#lineOf)
    const kept = suppress(found, {
      iouThreshold,
      maxKept: maxDetections,
      withinClasses: head.needsNms,
      exclusive: this.plan.exclusive,
    })
    return { found, kept, belowFirst: this.#belowFirst, unsound, strange: this.#watch.strange }
  }

  /** Models with NMS inside may give another number of boxes in every run. */
  #headFor(outputs: readonly HeadOutput[]): Head {
    const shapes = outputs.map((output) => output.shape.join()).join(';')
    if (this.#head === undefined || shapes !== this.#shapes) {
      const each = outputs.map((output) => output.shape)
      if (this.isNewSize) checkGrids(this.plan, this.input, each)
      this.#head = createHead(this.plan, this.input, each)
      this.#shapes = shapes
    }
    return this.#head
  }
}
