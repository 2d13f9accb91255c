import { TensorShapeError } from '../../inference/errors.js'
import type { SizePx } from '../../frames/letterbox.js'
import { EndToEndHead } from './end-to-end.js'
import { gridCells } from './grid.js'
import type { Head, HeadPlan } from './head.js'
import { YoloV5Head } from './yolov5.js'
import { YoloV8Head } from './yolov8.js'
import { YoloXHead } from './yolox.js'

/**
 * The decoder for a head whose output has that shape.
 *
 * @param shape - as the model really gives it, batch dimension included.
 * @throws TensorShapeError `GANTRY_TENSOR_SHAPE` if the shape is not what the plan expects.
 */
export function createHead(plan: HeadPlan, input: SizePx, shape: readonly number[]): Head {
  const [, second = 0, third = 0] = shape
  const fits = shape.length === 3 && fitsPlan(plan, input, second, third)
  if (!fits)
    throw new TensorShapeError(
      `output "${plan.output}" has shape [${shape.join(', ')}], which a ${plan.kind} head with ${plan.classes ?? 'any number of'} classes cannot have`,
      'Set parameters "gantry.head" in config.pbtxt to the head the model was exported with.',
    )
  const classes = plan.classes ?? 0
  switch (plan.kind) {
    case 'yolov8':
      return new YoloV8Head(classes, third)
    case 'yolov5':
      return new YoloV5Head(classes, second)
    case 'yolox':
      return new YoloXHead(classes, input, plan.strides)
    case 'end-to-end':
      return new EndToEndHead(second)
    default:
      return plan.kind satisfies never
  }
}

function fitsPlan(plan: HeadPlan, input: SizePx, second: number, third: number): boolean {
  switch (plan.kind) {
    case 'yolov8':
      return second === 4 + (plan.classes ?? 0)
    case 'yolov5':
      return third === 5 + (plan.classes ?? 0)
    case 'yolox':
      return third === 5 + (plan.classes ?? 0) && second === gridCells(input, plan.strides)
    case 'end-to-end':
      return third === 6
    default:
      return plan.kind satisfies never
  }
}
