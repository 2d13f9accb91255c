import type { Candidates } from './candidates.js'

/**
 * - `yolov8`: `[N, 4 + classes, anchors]`, centre and size in input pixels, class scores (v8, v9, v11)
 * - `yolov5`: `[N, anchors, 5 + classes]`, the same with an objectness score, decoded in the graph (v5, v6, v7)
 * - `yolox`: `[N, cells, 5 + classes]`, offsets and logarithms per grid cell
 * - `end-to-end`: `[N, boxes, 6]`, corners in input pixels, score, class; NMS is inside the model (v10, exports with NMS)
 */
export const headKinds = ['yolov8', 'yolov5', 'yolox', 'end-to-end'] as const
export type HeadKind = (typeof headKinds)[number]

/** How the output of a detector is to be read. */
export type HeadPlan = Readonly<{
  kind: HeadKind
  /** Name of the output. */
  output: string
  /** Number of classes; `undefined` where the output does not tell (end-to-end). */
  classes: number | undefined
  /** Cell sizes of the grid, for `yolox`. */
  strides: readonly number[]
}>

/** Reads the boxes of one frame out of a head's output. */
export interface Head {
  /** Whether boxes may overlap and must go through NMS. */
  readonly needsNms: boolean
  /**
   * Appends every box that scores at least `minScore`.
   *
   * @param output - float32, the whole batch.
   * @param start - index of the frame's first element.
   */
  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void
}
