import type { SizePx } from '../../vision/letterbox.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { gridCells } from './grid.js'
import { defaultHeadOptions, type HeadKind, type HeadOptions, type HeadPlan } from './head.js'
import type { HeadSettings } from './head-settings.js'
import { cellsOf } from './nanodet.js'
import { endsWithBackground } from './label-list.js'
import { gridLayout } from './raw-grid.js'

/** What is known of a model whose detections stand in several outputs. */
export type SeveralClues = Readonly<{
  input: SizePx
  outputs: readonly ModelTensor[]
  /** How many classes the labels may stand for, the likeliest number first; `undefined` without labels. */
  counts: readonly number[] | undefined
  names?: readonly string[] | undefined
  settings: HeadSettings
}>

type Found = Readonly<{ kind: HeadKind; outputs: readonly ModelTensor[]; reason: string }> & Recognised
type Recognised = Readonly<{
  classes?: number | undefined
  columns?: number
  strides?: readonly number[]
  options?: Partial<HeadOptions>
}>

/** Anchors of YOLOv3 and YOLOv5 for three strides, and of the tiny ones for two. */
const usualAnchors: Readonly<Record<number, readonly number[]>> = {
  2: [10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319],
  3: [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326],
}

const boxesBeforeScores = /^(?!raw_).*(box|loc(ation)?s?$)/i
const scoreName = /score|conf|prob|cls/i
const labelName = /label|class/i

/** Boxes, DETR, SSD and NanoDet by the names and shapes of their outputs. */
export function recogniseSeparate(clues: SeveralClues): HeadPlan | undefined {
  const found = separateLabels(clues) ?? rowsOfScores(clues) ?? nanodetPairs(clues) ?? nanodetTogether(clues)
  return found === undefined ? undefined : planOf(found, clues)
}

/** Raw grids, which models often give beside outputs that are decoded. */
export function recogniseGrid(clues: SeveralClues): HeadPlan | undefined {
  const found = rawGrids(clues)
  return found === undefined ? undefined : planOf(found, clues)
}

/** A kind that the configuration names, with its outputs in the order it gives. */
export function planAsSet(kind: HeadKind, clues: SeveralClues): HeadPlan | undefined {
  const { settings } = clues
  const named = settings.outputs?.flatMap(
    (name) => clues.outputs.find((output) => output.name === name) ?? [],
  )
  const only = named === undefined ? clues : { ...clues, outputs: named }
  const recognised = kind === 'grid' ? rawGrids(only) : firstOfKind(kind, only)
  if (recognised !== undefined) return planOf(recognised, clues)
  if (named === undefined || named.length !== settings.outputs?.length) return undefined
  return planOf({ kind, outputs: named, reason: 'its outputs are set by gantry.head_outputs' }, clues)
}

function firstOfKind(kind: HeadKind, clues: SeveralClues): Found | undefined {
  const tried = [separateLabels, rowsOfScores, nanodetPairs, nanodetTogether]
  for (const attempt of tried) {
    const found = attempt(clues)
    if (found !== undefined && (found.kind === kind || (isScored(found.kind) && isScored(kind))))
      return { ...found, kind }
  }
  return undefined
}

function isScored(kind: HeadKind): boolean {
  return kind === 'detr' || kind === 'ssd'
}

function planOf(
  { kind, outputs, reason, classes, columns = columnsOf(kind, outputs), strides = [], options }: Found,
  clues: SeveralClues,
): HeadPlan {
  const { settings } = clues
  const [first, ...others] = outputs
  return {
    kind,
    output: first?.name ?? '',
    others: others.map((output) => output.name),
    classes: settings.classes ?? classes,
    ...(columns === undefined ? {} : { columns }),
    strides: settings.strides ?? strides,
    options: { ...defaultHeadOptions, ...options, ...settings.options },
    reason,
    ...(settings.quantised === undefined ? {} : { quantised: settings.quantised }),
  }
}

/** Columns of the scores where outputs are set that have nothing else. */
function columnsOf(kind: HeadKind, [scores, ...others]: readonly ModelTensor[]): number | undefined {
  const isApart = kind === 'ssd' || kind === 'detr' || (kind === 'nanodet' && others.length > 0)
  const columns = isApart && scores?.shape.length === 3 ? scores.shape[2] : undefined
  return typeof columns === 'number' ? columns : undefined
}

/** One score and one label beside each box. */
function separateLabels({ outputs }: SeveralClues): Found | undefined {
  const boxes = boxesOf(outputs)
  if (boxes === undefined) return undefined
  const beside = outputs.filter(
    (output) => output.shape.length === boxes.shape.length - 1 && output !== boxes,
  )
  const scores = beside.find(({ name }) => scoreName.test(name) && !labelName.test(name))
  const labels = beside.find(({ name }) => labelName.test(name))
  if (scores === undefined || labels === undefined) return undefined
  const names = `outputs "${boxes.name}", "${scores.name}", "${labels.name}"`
  const found = { kind: 'boxes', outputs: [boxes, scores, labels] } as const
  if (/^detection_boxes/.test(boxes.name))
    return {
      ...found,
      reason: `${names} are those of TensorFlow's detection API: y before x, in 0..1, classes from 1`,
      options: { box: 'yxyx', unit: 'relative', firstClass: 1 },
    }
  if (boxes.shape.length === 2)
    return {
      ...found,
      reason: `${names} without a batch dimension are those of torchvision: pixels, classes from 1`,
      options: { firstClass: 1 },
    }
  if (boxes.name === 'bboxes')
    return {
      ...found,
      reason: `${names} are those of SSD with NMS inside: 0..1, classes from 1`,
      options: { unit: 'relative', firstClass: 1 },
    }
  return { ...found, reason: `${names} are boxes, scores and labels, in input pixels, classes from 0` }
}

/** A row of scores beside each box. */
function rowsOfScores(clues: SeveralClues): Found | undefined {
  const { input, outputs, names: labels, settings } = clues
  const boxes = boxesOf(outputs)
  if (boxes?.shape.length !== 3) return undefined
  const rows = boxes.shape[1]
  const scores = outputs.find(
    ({ name, shape }) =>
      (scoreName.test(name) || /logit/i.test(name)) &&
      name !== boxes.name &&
      shape.length === 3 &&
      shape[1] === rows,
  )
  const columns = scores?.shape[2]
  if (scores === undefined || typeof columns !== 'number') return undefined
  const names = `outputs "${scores.name}" and "${boxes.name}"`
  if (/logit/i.test(scores.name)) return detr(scores, boxes, columns, clues, names)
  const together = [8, 16, 32]
  if (rows === gridCells(input, together) && (settings.options.background ?? 'none') === 'none')
    return {
      kind: 'ssd',
      outputs: [scores, boxes],
      classes: columns,
      columns,
      reason: `${names} have a row for each cell of strides ${together.join(', ')}: decoded boxes in pixels, no background (YOLO-NAS)`,
    }
  const priors = outputs.find(({ name }) => /prior|anchor/i.test(name))
  const background = settings.options.background ?? 'first'
  return {
    kind: 'ssd',
    outputs: [scores, boxes, ...(priors === undefined ? [] : [priors])],
    classes: columns - (background === 'none' || labels?.length === columns ? 0 : 1),
    columns,
    reason: `${names}${priors === undefined ? '' : `, from the priors "${priors.name}",`} are those of SSD: 0..1, ${background === 'none' ? 'no background' : `background ${background}`}`,
    options: { unit: 'relative', background, firstClass: background === 'first' ? 1 : 0 },
  }
}

/** DETR has a logit more than classes, for nothing; RT-DETR has none. */
function detr(
  scores: ModelTensor,
  boxes: ModelTensor,
  columns: number,
  { counts, names: labels, settings }: SeveralClues,
  names: string,
): Found {
  const { background } = settings.options
  const hasNothing =
    counts === undefined
      ? columns === 92
      : labels?.length === columns && endsWithBackground(labels)
        ? true
        : !counts.includes(columns) && counts.includes(columns - 1)
  const softmax = background === undefined ? hasNothing : background !== 'none'
  return {
    kind: 'detr',
    outputs: [scores, boxes],
    classes: softmax ? columns - 1 : columns,
    columns,
    reason: `${names} are those of ${softmax ? 'DETR: softmax, nothing last' : 'RT-DETR: sigmoid'}`,
    options: {
      box: 'cxcywh',
      unit: 'relative',
      ...(softmax ? { activation: 'softmax', background: 'last' } : { activation: 'sigmoid' }),
    },
  }
}

/** Boxes `[N, Q, 4]` or `[Q, 4]`. */
function boxesOf(outputs: readonly ModelTensor[]): ModelTensor | undefined {
  return outputs.find(
    ({ name, shape }) =>
      boxesBeforeScores.test(name) && shape.at(-1) === 4 && (shape.length === 2 || shape.length === 3),
  )
}

const nanodetStrides: readonly (readonly number[])[] = [
  [8, 16, 32],
  [8, 16, 32, 64],
]

/** For each stride, scores and distances with as many rows as the stride has cells. */
function nanodetPairs({ input, outputs, counts }: SeveralClues): Found | undefined {
  for (const strides of nanodetStrides) {
    const pairs = strides.map((stride) => nanodetPair(outputs, cellsOf(input, stride), counts))
    const [first] = pairs
    if (outputs.length !== strides.length * 2 || first === undefined || pairs.includes(undefined)) continue
    return {
      kind: 'nanodet',
      outputs: pairs.flatMap((pair) => pair ?? []),
      classes: Number(first[0].shape[2]),
      columns: Number(first[0].shape[2]),
      strides,
      reason: `scores and distances for each of the strides ${strides.join(', ')}`,
      options: { regMax: Number(first[1].shape[2]) / 4 - 1, offset: 0.5 },
    }
  }
  return undefined
}

function nanodetPair(
  outputs: readonly ModelTensor[],
  cells: number,
  counts: readonly number[] | undefined,
): [ModelTensor, ModelTensor] | undefined {
  const rows = outputs.filter(({ shape }) => shape.length === 3 && shape[1] === cells)
  const distances = rows.find(({ name, shape }) => Number(shape[2]) % 4 === 0 && /dis|reg|box/i.test(name))
  const others = rows.filter((output) => output !== distances)
  const scores = others.find(({ shape }) => counts?.includes(Number(shape[2]))) ?? others[0]
  return distances === undefined || scores === undefined ? undefined : [scores, distances]
}

/** Bins of distances that NanoDet is trained with, all four sides together: its `reg_max` is 7, 10 or 16. */
const usualBins = [32, 44, 68]

/** Scores and distances beside each other; only with labels is it clear where one ends. */
function nanodetTogether({ input, outputs, counts = [], settings }: SeveralClues): Found | undefined {
  for (const output of outputs) {
    const [, rows, third] = output.shape
    const width = Number(third)
    const strides = [...nanodetStrides].find(
      (known) => known.reduce((sum, stride) => sum + cellsOf(input, stride), 0) === rows,
    )
    const { regMax } = settings.options
    const set = settings.classes ?? (regMax === undefined ? undefined : width - 4 * (regMax + 1))
    const classes = set ?? counts.find((count) => usualBins.includes(width - count)) ?? Number.NaN
    const bins = width - classes
    if (output.shape.length !== 3 || strides === undefined || !(classes >= 1)) continue
    if (!(bins >= 8 && bins % 4 === 0)) continue
    return {
      kind: 'nanodet',
      outputs: [output],
      classes,
      columns: classes,
      strides,
      reason: `output "${output.name}" has ${classes} scores and ${bins} numbers of distances for each cell`,
      options: { regMax: bins / 4 - 1 },
    }
  }
  return undefined
}

/** Two or three outputs of cells, each half as fine as the one before. */
function rawGrids({ input, outputs, counts = [], settings }: SeveralClues): Found | undefined {
  const sized = outputs
    .filter(({ shape }) => shape.length === 4 || shape.length === 5)
    .map((output) => ({ output, shape: output.shape.map((size) => (typeof size === 'number' ? size : -1)) }))
  const anchors = settings.options.anchors ?? usualAnchors[sized.length] ?? []
  const perCell = anchors.length / 2 / Math.max(1, sized.length)
  if (sized.length === 0 || !Number.isInteger(perCell) || perCell === 0) return undefined
  const classes = settings.classes ?? gridClasses(sized[0]?.shape ?? [], perCell, counts)
  const levels = sized.flatMap(({ output, shape }) => {
    const layout = gridLayout(shape, 5 + classes, perCell)
    return layout === undefined ? [] : [{ output, columns: layout.columns }]
  })
  if (levels.length !== sized.length || levels.some(({ columns }) => input.widthPx % columns !== 0))
    return undefined
  const ordered = levels.sort((a, b) => b.columns - a.columns)
  return {
    kind: 'grid',
    outputs: ordered.map(({ output }) => output),
    classes,
    columns: classes,
    strides: ordered.map(({ columns }) => input.widthPx / columns),
    reason: `${sized.length} raw grids of ${ordered.map(({ columns }) => columns).join(', ')} columns with ${perCell} anchors each`,
    options: { anchors, activation: 'sigmoid', decoding: sized[0]?.shape.length === 5 ? 'v5' : 'v3' },
  }
}

/** Classes of a raw grid by its shape; where two of its sizes could hold them, by the labels. */
function gridClasses(shape: readonly number[], perCell: number, counts: readonly number[]): number {
  if (shape.length === 5) return (shape[4] ?? 5) - 5
  const possible = [shape[1] ?? 0, shape[3] ?? 0]
    .filter((size) => size % perCell === 0 && size / perCell > 5)
    .map((size) => size / perCell - 5)
  return counts.find((count) => possible.includes(count)) ?? possible[0] ?? -5
}
