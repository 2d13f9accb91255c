import type { SizePx } from '../../vision/letterbox.js'
import { BoxesHead } from './boxes.js'
import { defaultHeadOptions, type Head, type HeadPlan, outputsOf } from './head.js'
import { NanodetHead } from './nanodet.js'
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
      const [, a, b] = shapes[0] ?? []
      const isPlanar = a !== boxes && b === boxes
      const columns = (isPlanar ? a : b) ?? 0
      if (boxes === undefined || (isPlanar ? b : a) !== boxes || columns < 1 || !priorsFit(shapes[2], boxes))
        return undefined
      return new ScoredBoxesHead(plan.kind === 'ssd', boxes, columns, input, options, isPlanar)
    }
    case 'nanodet':
    case 'picodet':
      return NanodetHead.of(plan, input, shapes, options)
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

function gridLayouts({ classes = 0, options }: HeadPlan, shapes: Shapes): readonly GridLayout[] | undefined {
  const anchors = (options?.anchors.length ?? 0) / 2 / shapes.length
  const layouts = shapes.flatMap((shape) => gridLayout(shape, 5 + classes, anchors) ?? [])
  return layouts.length === shapes.length ? layouts : undefined
}
