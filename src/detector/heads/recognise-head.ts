import type { SizePx } from '../../vision/letterbox.js'
import { describeTensor, type ModelTensor } from '../../tensors/tensor.js'
import { HeadUnknownError } from '../errors.js'
import { fastestdetGrid } from './fastestdet.js'
import { stridesFor } from './grid.js'
import { defaultHeadOptions, headKinds, type HeadKind, type HeadPlan } from './head.js'
import { type HeadSettings, noHeadSettings } from './head-settings.js'
import { countsOf } from './label-list.js'
import { planAsSet, recogniseGrid, recogniseSeparate } from './recognise-several.js'
import type { SeveralClues } from './several-clues.js'

/** What is known of a model when its head is looked for. */
export type HeadClues = Readonly<{
  /** Named in errors. */
  model: string
  input: SizePx
  outputs: readonly ModelTensor[]
  /** Number of labels, where there are any. */
  labels: number | undefined
  /** The labels themselves: some of them may stand for nothing. */
  names?: readonly string[] | undefined
  /** The model parameter `gantry.head`. */
  explicit: string | undefined
  /** The other `gantry.head*` parameters. */
  settings?: HeadSettings
}>

const forms = `yolov8 [N, 4 + classes, anchors], yolov5 or yolox [N, anchors, 5 + classes], end-to-end [N, boxes, 6], fastestdet [N, 5 + classes, H, W], or several outputs as in docs/models.md, as float32; integers need gantry.head_scale`
const setHint = `Set parameters { key: "gantry.head" value { string_value: "..." } } in config.pbtxt to one of: ${headKinds.join(', ')}.`

/**
 * Finds out how a detector's output is to be read, from its shape, the number of labels, and what the configuration says.
 *
 * @throws HeadUnknownError `GANTRY_HEAD_UNKNOWN` naming the outputs and the forms that are understood.
 */
export function recogniseHead(clues: HeadClues): HeadPlan {
  const explicit = explicitKind(clues)
  const plan = explicit !== undefined && !isSingle(explicit) ? asSet(explicit, clues) : found(clues, explicit)
  return withSettings(plan, clues)
}

function isSingle(kind: HeadKind): boolean {
  return ['yolov8', 'yolov5', 'yolox', 'end-to-end', 'fastestdet'].includes(kind)
}

function asSet(kind: HeadKind, clues: HeadClues): HeadPlan {
  const plan = planAsSet(kind, several(clues))
  if (plan === undefined) throw unknownHead(clues, kind)
  return { ...plan, reason: 'gantry.head is set' }
}

function found(clues: HeadClues, explicit: HeadKind | undefined): HeadPlan {
  const separate = explicit === undefined ? recogniseSeparate(several(clues)) : undefined
  if (separate !== undefined) return separate
  const counts = labelCounts(clues)
  const fitting = plansFor({ ...clues, counts }, explicit)
  // Labels that fit nothing are an error of their own, told where labels are compared.
  const any = counts === undefined ? undefined : 'any'
  const plans = fitting.length > 0 ? fitting : plansFor({ ...clues, counts: any }, explicit)
  const [plan, ...others] = plans
  if (plan === undefined) {
    const grid = explicit === undefined ? recogniseGrid(several(clues)) : undefined
    const one = grid ?? fastestdet(clues, explicit)
    if (one === undefined) throw unknownHead(clues, explicit)
    return one
  }
  if (others.length > 0)
    throw new HeadUnknownError(
      `model "${clues.model}": ${plans.length} outputs could be detections (${plans.map((p) => p.output).join(', ')}): it has ${described(clues)}`,
      'Export the model with one detection output, or name it in the parameter gantry.head_outputs.',
    )
  return {
    ...plan,
    reason: explicit === undefined ? `the shape of output "${plan.output}"` : 'gantry.head is set',
  }
}

function several(clues: HeadClues): SeveralClues {
  const settings = clues.settings ?? noHeadSettings
  return {
    ...clues,
    counts: labelCounts(clues),
    settings,
    outputs: clues.outputs.filter((output) => isReadable(output, settings) || isLabelled(output)),
  }
}

/** How many classes the labels may stand for, the likeliest number first. */
function labelCounts({ names, labels }: HeadClues): readonly number[] | undefined {
  if (names !== undefined) return countsOf(names)
  return labels === undefined ? undefined : [labels]
}

/** Labels may be integers; other integers stand for numbers only by their scale. */
function isReadable({ name, type }: ModelTensor, settings: HeadSettings): boolean {
  if (type === 'float32' || type === 'float16' || type === 'float64') return true
  return (
    settings.quantised !== undefined || ((type === 'int64' || type === 'int32') && /label|class/i.test(name))
  )
}

/** Whole numbers beside boxes are labels, whatever their name. */
function isLabelled({ type, shape }: ModelTensor): boolean {
  return (type === 'int64' || type === 'int32') && (shape.length === 1 || shape.length === 2)
}

/** Cells of the one grid that FastestDet has, which others may have too. */
const fastestdetStride = 16

/** One grid with objectness, four numbers of a box and a score of each class, where labels or the size of its cells speak for it. */
function fastestdet(clues: HeadClues, explicit: HeadKind | undefined): HeadPlan | undefined {
  const { settings = noHeadSettings, input } = clues
  const counts = settings.classes === undefined ? labelCounts(clues) : [settings.classes]
  const wanted = clues.outputs.filter(
    (output) => isReadable(output, settings) && (settings.outputs?.includes(output.name) ?? true),
  )
  const [output, ...others] = wanted
  if (output?.shape.length !== 4 || others.length > 0) return undefined
  if (explicit !== undefined && explicit !== 'fastestdet') return undefined
  const widths = [output.shape[1], output.shape[3]].filter((width) => typeof width === 'number')
  const fitting = widths.filter(
    (width) => width > 5 && fastestdetGrid(output.shape, input, width) !== undefined,
  )
  const numbers = fitting.find((width) => counts?.includes(width - 5)) ?? fitting[0] ?? 0
  const grid = fastestdetGrid(output.shape, input, numbers)
  if (grid === undefined || numbers === 0) return undefined
  const stride = input.widthPx / grid.columns
  const classes = numbers - 5
  const isKnown = counts === undefined ? stride === fastestdetStride : counts.includes(classes)
  if (explicit === undefined && !isKnown) return undefined
  const how = `output "${output.name}" has 5 + ${classes} numbers for each cell of stride ${stride}`
  const reason = explicit === undefined ? how : 'gantry.head is set'
  return { kind: 'fastestdet', output: output.name, classes, columns: classes, strides: [stride], reason }
}

function withSettings(plan: HeadPlan, { settings, model }: HeadClues): HeadPlan {
  const options = plan.options ?? { ...defaultHeadOptions, ...settings?.options }
  if (options.activation === 'softmax' && plan.columns === undefined)
    throw unfitActivation(model, plan.kind, 'softmax', 'the score of a box is one number, and no row')
  if (options.activation === 'percent' && plan.kind === 'grid')
    throw unfitActivation(model, plan.kind, 'percent', 'its cells are not yet scores')
  return { ...plan, options, ...(settings?.quantised === undefined ? {} : { quantised: settings.quantised }) }
}

function unfitActivation(model: string, kind: HeadKind, activation: string, why: string): HeadUnknownError {
  return new HeadUnknownError(
    `model "${model}": gantry.head_activation is "${activation}", but of a ${kind} head ${why}`,
    'Set it to "none" or "sigmoid", or leave it out.',
  )
}

function described({ outputs }: HeadClues): string {
  return outputs.map((output) => `"${output.name}" ${describeTensor(output)}`).join(', ')
}

function unknownHead(clues: HeadClues, explicit: HeadKind | undefined): HeadUnknownError {
  return new HeadUnknownError(
    `model "${clues.model}": no output can be read as ${explicit === undefined ? 'detections' : `a ${explicit} head`} for an input of ${clues.input.widthPx}x${clues.input.heightPx}: it has ${described(clues)}; expected ${forms}`,
    setHint,
  )
}

/** `any`: there are labels, and how many is not asked. */
type ShapeClues = HeadClues & Readonly<{ counts: readonly number[] | 'any' | undefined }>

function plansFor(clues: ShapeClues, explicit: HeadKind | undefined): HeadPlan[] {
  const { settings = noHeadSettings } = clues
  const named = clues.outputs.filter(({ name }) => settings.outputs?.includes(name) ?? true)
  return named.flatMap((output) => planOf(clues, output, explicit) ?? [])
}

function explicitKind(clues: HeadClues): HeadKind | undefined {
  if (clues.explicit === undefined) return undefined
  const kind = headKinds.find((known) => known === clues.explicit)
  if (kind === undefined)
    throw new HeadUnknownError(
      `model "${clues.model}": gantry.head "${clues.explicit}" is not known`,
      setHint,
    )
  return kind
}

function planOf(
  clues: ShapeClues,
  output: ModelTensor,
  explicit: HeadKind | undefined,
): HeadPlan | undefined {
  const [, second, third] = output.shape
  if (
    !isReadable(output, clues.settings ?? noHeadSettings) ||
    output.shape.length !== 3 ||
    second === undefined ||
    third === undefined
  )
    return undefined
  const shape = { second, third }
  if (explicit === 'fastestdet') return undefined
  if (explicit !== undefined) return planAs(explicit as SingleKind, clues, output.name, shape)
  const order: readonly SingleKind[] = ['yolox', 'yolov5', 'yolov8', 'end-to-end']
  for (const kind of order) if (looksLike(kind, clues, shape)) return planAs(kind, clues, output.name, shape)
  return undefined
}

type SingleKind = 'yolov8' | 'yolov5' | 'yolox' | 'end-to-end'
type Shape = Readonly<{ second: number | string; third: number | string }>

/** Whether a shape can hardly be anything else. The order of the questions matters: see the caller. */
function looksLike(kind: SingleKind, { input, counts }: ShapeClues, { second, third }: Shape): boolean {
  switch (kind) {
    case 'yolox':
      // One anchor per cell and an objectness column: nothing in the graph has turned cells into pixels.
      return (
        isCount(second) &&
        isCount(third) &&
        third > 5 &&
        labelsFit(third - 5, counts) &&
        stridesFor(input, second, 1) !== undefined
      )
    case 'yolov5':
      return (
        isCount(second) &&
        isCount(third) &&
        third > 5 &&
        labelsFit(third - 5, counts) &&
        stridesFor(input, second, 3) !== undefined
      )
    case 'yolov8': {
      if (!isCount(second) || second < 5 || !labelsFit(second - 4, counts)) return false
      if (!isCount(third)) return counts !== undefined
      return stridesFor(input, third, 1) !== undefined || (counts !== undefined && third > second)
    }
    case 'end-to-end':
      return third === 6 && (!isCount(second) || second <= 1_000)
    default:
      return kind satisfies never
  }
}

function planAs(
  kind: SingleKind,
  clues: ShapeClues,
  output: string,
  { second, third }: Shape,
): HeadPlan | undefined {
  switch (kind) {
    case 'yolov8':
      return isCount(second) && second >= 5
        ? { kind, output, classes: second - 4, columns: second - 4, strides: [] }
        : undefined
    case 'yolov5':
      return isCount(third) && third > 5
        ? { kind, output, classes: third - 5, columns: third - 5, strides: [] }
        : undefined
    case 'yolox': {
      if (!isCount(third) || third <= 5) return undefined
      const strides = isCount(second) ? stridesFor(clues.input, second, 1) : [8, 16, 32]
      return strides === undefined
        ? undefined
        : { kind, output, classes: third - 5, columns: third - 5, strides }
    }
    case 'end-to-end':
      return third === 6 ? { kind, output, classes: undefined, strides: [] } : undefined
    default:
      return kind satisfies never
  }
}

function isCount(size: number | string): size is number {
  return typeof size === 'number'
}

function labelsFit(classes: number, counts: ShapeClues['counts']): boolean {
  return counts === undefined || counts === 'any' || counts.includes(classes)
}
