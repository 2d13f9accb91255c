import type { Quantisation } from '../head-values.js'
import type { Candidates } from './candidates.js'

/**
 * - `yolov8`: `[N, 4 + classes, anchors]`, centre and size in input pixels, class scores (v8, v9, v11)
 * - `yolov5`: `[N, anchors, 5 + classes]`, the same with an objectness score, decoded in the graph (v5, v6, v7)
 * - `yolox`: `[N, cells, 5 + classes]`, offsets and logarithms per grid cell
 * - `end-to-end`: `[N, boxes, 6]`, corners in input pixels, score, class; NMS is inside the model (v10, exports with NMS)
 */
export const headKinds = ['yolov8', 'yolov5', 'yolox', 'end-to-end'] as const
export type HeadKind = (typeof headKinds)[number]

/** How the outputs of a detector are to be read. */
export type HeadPlan = Readonly<{
  kind: HeadKind
  /** Name of the output; of the first one where there are several. */
  output: string
  /** Names of the further outputs, in the order the kind reads them. */
  others?: readonly string[]
  /** Number of classes; `undefined` where the output does not tell (end-to-end). */
  classes: number | undefined
  /** Cell sizes of the grid, for `yolox`. */
  strides: readonly number[]
  /** Of outputs that hold integers, in the order of the outputs. */
  quantised?: readonly (Quantisation | undefined)[]
}>

/** Names of all outputs a plan reads, in its order. */
export function outputsOf({ output, others = [] }: HeadPlan): readonly string[] {
  return [output, ...others]
}

/** Reads the boxes of one frame out of the outputs of a detector. */
export interface Head {
  /** Whether boxes may overlap and must go through NMS. */
  readonly needsNms: boolean
  /**
   * Appends every box that scores at least `minScore`, in model-input pixels.
   *
   * @param outputs - float32, the whole batch, in the order of the plan.
   * @param frame - its place in the batch.
   */
  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void
}

/** A head with one output. */
export interface OutputHead {
  readonly needsNms: boolean
  /** @param start - index of the frame's first element. */
  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void
}
