import type { Quantisation } from '../head-values.js'
import type { Candidates } from './candidates.js'
import type { CellLayout } from './cell-layout.js'

/**
 * One output:
 * - `yolov8`: `[N, 4 + classes, anchors]`, centre and size in input pixels, class scores (v8, v9, v11)
 * - `yolov5`: `[N, anchors, 5 + classes]`, the same with an objectness score, decoded in the graph (v5, v6, v7)
 * - `yolox`: `[N, cells, 5 + classes]`, offsets and logarithms per grid cell
 * - `fastestdet`: `[N, 5 + classes, H, W]`, one grid of cells
 * - `end-to-end`: `[N, boxes, 6]`, corners in input pixels, score, class; NMS is inside the model (v10, exports with NMS)
 *
 * Several outputs, in this order:
 * - `boxes`: boxes `[N, Q, 4]`, scores `[N, Q]`, labels `[N, Q]`; without `N` for one picture; NMS is done or not needed
 *   (RT-DETR, D-FINE, torchvision, TensorFlow's detection API)
 * - `detr`: logits `[N, Q, classes]`, boxes `[N, Q, 4]`, centre and size in 0..1 (DETR and RT-DETR without postprocessing)
 * - `ssd`: scores `[N, P, classes]` or `[N, classes, P]`, boxes `[N, P, 4]`, and priors `[P, 4]` where the boxes are offsets from them
 * - `nanodet`, `picodet`: class scores and distances of each stride in turn, of all strides in two outputs, or both beside each other in one
 * - `grid`: raw cells of each stride: `[N, anchors, H, W, 5 + classes]`, or `[N, anchors * (5 + classes), H, W]`
 */
export const headKinds = [
  'yolov8',
  'yolov5',
  'yolox',
  'fastestdet',
  'end-to-end',
  'boxes',
  'detr',
  'ssd',
  'nanodet',
  'picodet',
  'grid',
] as const
export type HeadKind = (typeof headKinds)[number]

export const boxForms = ['xyxy', 'yxyx', 'cxcywh'] as const
export const boxUnits = ['px', 'relative'] as const
export const activations = ['none', 'sigmoid', 'softmax', 'percent'] as const
export const backgrounds = ['none', 'first', 'last'] as const
export const gridDecodings = ['v3', 'v5'] as const

/** What the kinds leave open. */
export type HeadOptions = Readonly<{
  /** Order of the four numbers of a box. */
  box: (typeof boxForms)[number]
  /** Input pixels, or parts of the input's size. */
  unit: (typeof boxUnits)[number]
  /** What the model gives for the first label: number of a class, or column of the scores. -1 where it has none for it. */
  firstClass: number
  /** Column of the scores that stands for nothing. */
  background: (typeof backgrounds)[number]
  /** What turns the scores into 0..1; `percent`: they are 0..100. */
  activation: (typeof activations)[number]
  /** Highest distance of `nanodet` and `picodet`, in cells; each side has one more bins. */
  regMax: number
  /** Where a cell's point is: 0 at its corner, 0.5 in its middle. */
  offset: number
  /** Width and height in pixels of each anchor of `grid`, from the finest stride. */
  anchors: readonly number[]
  decoding: (typeof gridDecodings)[number]
}>

export const defaultHeadOptions: HeadOptions = {
  box: 'xyxy',
  unit: 'px',
  firstClass: 0,
  background: 'none',
  activation: 'none',
  regMax: 7,
  offset: 0,
  anchors: [],
  decoding: 'v5',
}

/** How the outputs of a detector are to be read. */
export type HeadPlan = Readonly<{
  kind: HeadKind
  /** Name of the output; of the first one where there are several. */
  output: string
  /** Names of the further outputs, in the order the kind reads them. */
  others?: readonly string[]
  /** Number of classes; `undefined` where the outputs do not tell (end-to-end, boxes). */
  classes: number | undefined
  /** Columns of scores, where the background may be among them. */
  columns?: number
  /**
   * Line of the label list for each column of scores, or each number of a class, that the model gives; -1 for what stands for nothing.
   * Absent without labels: the line is then the number less `firstClass`. So it is for numbers beyond the list, too.
   */
  lines?: readonly number[]
  /** Cell sizes of the grid, for `yolox`, `nanodet`, `picodet` and `fastestdet`. */
  strides: readonly number[]
  /** How outputs of `nanodet` and `picodet` hold their cells; absent where only their shapes tell. */
  cellLayout?: CellLayout
  /** Of outputs that hold integers, in the order of the outputs. */
  quantised?: readonly (Quantisation | undefined)[]
  options?: HeadOptions
  /** Group of each class, where classes of one group exclude each other: of overlapping boxes the best one is kept. */
  exclusive?: readonly number[]
  /** How it was recognised, for people. */
  reason?: string
}>

/** Names of all outputs a plan reads, in its order. */
export function outputsOf({ output, others = [] }: HeadPlan): readonly string[] {
  return [output, ...others]
}

/** A part of an output that holds scores: rows of columns, so many elements apart. */
export type ScoreBlock = Readonly<{
  /** Of the outputs of the plan. */
  output: number
  start: number
  rows: number
  rowStep: number
  columns: number
  columnStep: number
}>

/** Reads the boxes of one frame out of the outputs of a detector. */
export interface Head {
  /** Whether boxes may overlap and must go through NMS. */
  readonly needsNms: boolean
  /**
   * Appends every box that scores at least `minScore`, in model-input pixels, with the column or number of its class as the model
   * gives it.
   *
   * @param outputs - float32, the whole batch, in the order of the plan.
   * @param frame - its place in the batch.
   */
  decode(outputs: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void
  /** Where all scores of a frame are, as the model gives them. */
  scoreBlocks(frame: number): readonly ScoreBlock[]
}

/** A head with one output. */
export interface OutputHead {
  readonly needsNms: boolean
  /** @param start - index of the frame's first element. */
  decode(output: Float32Array, start: number, minScore: number, out: Candidates): void
  /** @param start - index of the frame's first element. */
  scoreBlocks(start: number): readonly ScoreBlock[]
}
