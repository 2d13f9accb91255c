import type { SizePx } from '../../vision/letterbox.js'
import { BoxesHead } from './boxes.js'
import { defaultHeadOptions, type Head, type HeadPlan, outputsOf } from './head.js'
import { cellsOf, NanodetHead } from './nanodet.js'
import { type GridLayout, gridLayout, RawGridHead } from './raw-grid.js'
import { ScoredBoxesHead } from './scored-boxes.js'

type Shapes = readonly (readonly number[])[]

/** The decoder for a kind with several outputs, or `undefined` if their shapes do not fit the plan and each other. */
export function severalOutputs(plan: HeadPlan, input: SizePx, shapes: Shapes): Head | undefined {
  const options = plan.options ?? defaultHeadOptions
  if (shapes.length !== outputsOf(plan).length) return undefined
  switch (plan.kind) {
    case 'boxes': {
      const boxes = rowsOf(shapes[0], 4)
      if (boxes === undefined || shapes.slice(1).some((shape) => shape.at(-1) !== boxes)) return undefined
      return new BoxesHead(boxes, input, options)
    }
    case 'detr':
    case 'ssd': {
      const boxes = rowsOf(shapes[1], 4)
      const [, rows, columns = 0] = shapes[0] ?? []
      if (boxes === undefined || rows !== boxes || columns < 1 || !priorsFit(shapes[2], boxes))
        return undefined
      return new ScoredBoxesHead(plan.kind === 'ssd', boxes, columns, input, options)
    }
    case 'nanodet':
      return nanodetFits(plan, input, shapes, 4 * (options.regMax + 1))
        ? new NanodetHead(plan.classes ?? 0, plan.strides, input, options)
        : undefined
    case 'grid': {
      const layouts = gridLayouts(plan, shapes)
      return layouts === undefined ? undefined : new RawGridHead(plan.classes ?? 0, layouts, input, options)
    }
    default:
      return undefined
  }
}

/** Rows of `[N, rows, width]` or `[rows, width]`. */
function rowsOf(shape: readonly number[] | undefined, width: number): number | undefined {
  return shape?.at(-1) === width && (shape.length === 2 || shape.length === 3) ? shape.at(-2) : undefined
}

function priorsFit(shape: readonly number[] | undefined, boxes: number): boolean {
  return shape === undefined || rowsOf(shape, 4) === boxes
}

function nanodetFits(
  { strides, classes = 0 }: HeadPlan,
  input: SizePx,
  shapes: Shapes,
  bins: number,
): boolean {
  const cells = strides.map((stride) => cellsOf(input, stride))
  if (shapes.length === 1) {
    const all = cells.reduce((sum, count) => sum + count, 0)
    return shapes[0]?.[1] === all && shapes[0][2] === classes + bins
  }
  return cells.every((count, level) => {
    const [, scoreRows, scoreColumns] = shapes[level * 2] ?? []
    const [, rows, columns] = shapes[level * 2 + 1] ?? []
    return scoreRows === count && scoreColumns === classes && rows === count && columns === bins
  })
}

function gridLayouts({ classes = 0, options }: HeadPlan, shapes: Shapes): readonly GridLayout[] | undefined {
  const anchors = (options?.anchors.length ?? 0) / 2 / shapes.length
  const layouts = shapes.flatMap((shape) => gridLayout(shape, 5 + classes, anchors) ?? [])
  return layouts.length === shapes.length ? layouts : undefined
}
