import { TensorShapeError } from '../../runtime/errors.js'
import { elementCount } from '../../tensors/tensor.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { Candidates } from './candidates.js'
import { EndToEndHead } from './end-to-end.js'
import { FastestdetHead, fastestdetGrid } from './fastestdet.js'
import { gridCells } from './grid.js'
import {
  defaultHeadOptions,
  type Head,
  type HeadPlan,
  type OutputHead,
  outputsOf,
  type ScoreBlock,
} from './head.js'
import { severalOutputs } from './several-outputs.js'
import { YoloV5Head } from './yolov5.js'
import { YoloV8Head } from './yolov8.js'
import { YoloXHead } from './yolox.js'

/**
 * The decoder for a head whose outputs have those shapes.
 *
 * @param shapes - as the model really gives them, batch dimension included, in the order of the plan.
 * @throws TensorShapeError `GANTRY_TENSOR_SHAPE` if a shape is not what the plan expects.
 */
export function createHead(plan: HeadPlan, input: SizePx, shapes: readonly (readonly number[])[]): Head {
  const head = singleOutput(plan) ? oneOutput(plan, input, shapes) : severalOutputs(plan, input, shapes)
  if (head === undefined) throw unfit(plan, shapes)
  return head
}

type SingleKind = 'yolov8' | 'yolov5' | 'yolox' | 'end-to-end' | 'fastestdet'
type SinglePlan = HeadPlan & { kind: SingleKind }

function singleOutput(plan: HeadPlan): plan is SinglePlan {
  return ['yolov8', 'yolov5', 'yolox', 'end-to-end', 'fastestdet'].includes(plan.kind)
}

function oneOutput(
  plan: SinglePlan,
  input: SizePx,
  [shape = []]: readonly (readonly number[])[],
): Head | undefined {
  const { kind, classes = 0, options = defaultHeadOptions } = plan
  const elements = elementCount(shape.slice(1))
  if (kind === 'fastestdet') {
    const grid = fastestdetGrid(shape, input, 5 + classes)
    return grid && new OneOutput(new FastestdetHead(classes, input, grid, options), elements)
  }
  const [, second = 0, third = 0] = shape
  const rows = { ...plan, kind }
  if (shape.length !== 3 || !fitsPlan(rows, input, second, third)) return undefined
  return new OneOutput(outputHead(rows, input, second, third), elements)
}

function unfit(plan: HeadPlan, shapes: readonly (readonly number[])[]): TensorShapeError {
  const outputs = outputsOf(plan).map(
    (name, index) => `"${name}" has shape [${(shapes[index] ?? []).join(', ')}]`,
  )
  const { kind, classes = 'any number of', strides, options } = plan
  const isNanodet = kind === 'nanodet' || kind === 'picodet'
  const more = isNanodet
    ? `, strides ${strides.join(', ') || 'of nothing'} and reg_max ${options?.regMax ?? defaultHeadOptions.regMax}`
    : ''
  return new TensorShapeError(
    `output ${outputs.join(', ')}, which a ${kind} head with ${classes} classes${more} cannot have`,
    isNanodet
      ? 'Set gantry.head_classes, gantry.head_strides and gantry.head_reg_max in config.pbtxt to what the model was trained with.'
      : 'Set parameters "gantry.head" in config.pbtxt to the head the model was exported with.',
  )
}

/** A head with one output among those with several. */
class OneOutput implements Head {
  constructor(
    readonly head: OutputHead,
    readonly elementsPerFrame: number,
  ) {}

  get needsNms(): boolean {
    return this.head.needsNms
  }

  decode([output]: readonly Float32Array[], frame: number, minScore: number, out: Candidates): void {
    if (output !== undefined) this.head.decode(output, frame * this.elementsPerFrame, minScore, out)
  }

  scoreBlocks(frame: number): readonly ScoreBlock[] {
    return this.head.scoreBlocks(frame * this.elementsPerFrame)
  }
}

type RowsPlan = HeadPlan & { kind: Exclude<SingleKind, 'fastestdet'> }

function outputHead(plan: RowsPlan, input: SizePx, second: number, third: number): OutputHead {
  const { classes = 0, options = defaultHeadOptions } = plan
  const { activation } = options
  switch (plan.kind) {
    case 'yolov8':
      return new YoloV8Head(classes, third, activation)
    case 'yolov5':
      return new YoloV5Head(classes, second, activation)
    case 'yolox':
      return new YoloXHead(classes, input, plan.strides, activation)
    case 'end-to-end':
      return new EndToEndHead(second, activation)
    default:
      return plan.kind satisfies never
  }
}

function fitsPlan(plan: RowsPlan, input: SizePx, second: number, third: number): boolean {
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
