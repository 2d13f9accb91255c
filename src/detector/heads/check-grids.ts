import { TensorShapeError } from '../../runtime/errors.js'
import type { SizePx } from '../../vision/letterbox.js'
import { stridesFor } from './grid.js'
import { type HeadPlan, outputsOf } from './head.js'
import { gridLayout } from './raw-grid.js'

type Shapes = readonly (readonly number[])[]

/**
 * Checks that outputs of a kind with grids have the cells of an input of that size, as the shapes alone let any number through. Kinds without
 * a grid have as many boxes at any size, and those that count their cells to read them are checked by `createHead`.
 *
 * @param shapes - batch dimension included, in the order of the plan.
 * @throws TensorShapeError
 */
export function checkGrids(plan: HeadPlan, input: SizePx, shapes: Shapes): void {
  if (coversInput(plan, input, shapes)) return
  const outputs = outputsOf(plan).map((name, index) => `"${name}" [${(shapes[index] ?? []).join(', ')}]`)
  throw new TensorShapeError(
    `output ${outputs.join(', ')} has not the cells of a picture of ${input.widthPx}x${input.heightPx}`,
    'Set gantry.input_size in config.pbtxt to the size the model was exported with.',
  )
}

function coversInput(plan: HeadPlan, input: SizePx, shapes: Shapes): boolean {
  const [first = []] = shapes
  switch (plan.kind) {
    case 'yolov8':
      return hasCells(input, first[2], [1])
    case 'yolov5':
      // Of YOLOv6 one for each cell.
      return hasCells(input, first[1], [3, 1])
    case 'grid':
      return shapes.every((shape) => isLikeInput(plan, input, shape, shapes.length))
    case 'yolox':
    case 'nanodet':
    case 'picodet':
    case 'fastestdet':
    case 'end-to-end':
    case 'boxes':
    case 'detr':
    case 'ssd':
      return true
    default:
      return plan.kind satisfies never
  }
}

function hasCells(input: SizePx, rows: number | undefined, perCell: readonly number[]): boolean {
  return rows !== undefined && perCell.some((each) => stridesFor(input, rows, each) !== undefined)
}

/** Square cells. */
function isLikeInput(
  { classes = 0, options }: HeadPlan,
  { widthPx, heightPx }: SizePx,
  shape: readonly number[],
  levels: number,
): boolean {
  const layout = gridLayout(shape, 5 + classes, (options?.anchors.length ?? 0) / 2 / levels)
  return layout === undefined || widthPx / layout.columns === heightPx / layout.rows
}
