import type { SizePx } from '../../vision/letterbox.js'
import type { ModelTensor } from '../../tensors/tensor.js'
import { cellsIn, gridOf } from './cell-layout.js'
import { stridesFor } from './grid.js'
import { defaultHeadOptions, type HeadKind, type HeadPlan } from './head.js'
import { endsWithBackground } from './label-list.js'
import { gridLayout } from './raw-grid.js'
import { asSetNanodet, nanodet } from './recognise-nanodet.js'
import type { FoundHead, SeveralClues } from './several-clues.js'

/** Anchors of YOLOv3 and YOLOv5 for three strides, and of the tiny ones for two. */
const usualAnchors: Readonly<Record<number, readonly number[]>> = {
  2: [10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319],
  3: [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326],
}

const boxesBeforeScores = /^(?!raw_).*(box|loc(ation)?s?$)/i
const scoreName = /score|conf|prob|cls/i
const labelName = /label|class/i

/** Boxes, DETR, SSD, NanoDet and PicoDet by the names and shapes of their outputs. @throws HeadUnknownError */
export function recogniseSeparate(clues: SeveralClues): HeadPlan | undefined {
  const found = separateLabels(clues) ?? rowsOfScores(clues) ?? nanodet(clues)
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
  const found = { kind, outputs: named, reason: 'its outputs are set by gantry.head_outputs' }
  return planOf(familyOf(kind) === 'nanodet' ? { ...found, ...asSetNanodet(named, clues) } : found, clues)
}

function firstOfKind(kind: HeadKind, clues: SeveralClues): FoundHead | undefined {
  const tried = [separateLabels, rowsOfScores, nanodet]
  for (const attempt of tried) {
    const found = attempt(clues)
    if (found !== undefined && (found.kind === kind || familyOf(found.kind) === familyOf(kind)))
      return { ...found, kind }
  }
  return undefined
}

/** Kinds that the same outputs may be of. */
function familyOf(kind: HeadKind): HeadKind {
  if (kind === 'detr') return 'ssd'
  return kind === 'picodet' ? 'nanodet' : kind
}

function planOf(
  {
    kind,
    outputs,
    reason,
    classes,
    columns = columnsOf(kind, outputs),
    strides = [],
    cellLayout,
    options,
  }: FoundHead,
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
    ...(cellLayout === undefined ? {} : { cellLayout }),
    options: { ...defaultHeadOptions, ...options, ...settings.options },
    reason,
    ...(settings.quantised === undefined ? {} : { quantised: settings.quantised }),
  }
}

/** Columns of the scores where outputs are set that have nothing else. */
function columnsOf(kind: HeadKind, [scores, ...others]: readonly ModelTensor[]): number | undefined {
  const isApart = kind === 'ssd' || kind === 'detr' || (familyOf(kind) === 'nanodet' && others.length > 0)
  const columns = isApart && scores?.shape.length === 3 ? scores.shape[2] : undefined
  return typeof columns === 'number' ? columns : undefined
}

/** One score and one label beside each box. */
function separateLabels({ outputs }: SeveralClues): FoundHead | undefined {
  const boxes = boxesOf(outputs) ?? onlyBoxes(outputs)
  if (boxes === undefined) return undefined
  const beside = outputs.filter(
    (output) => output.shape.length === boxes.shape.length - 1 && output !== boxes,
  )
  // Names that say nothing leave the types: labels are whole numbers.
  const [only, another] = beside.length === 2 ? beside : []
  const byType = isWhole(only) && !isWhole(another) ? [another, only] : [only, another]
  const isByType = isWhole(byType[1]) && !isWhole(byType[0])
  const scores =
    beside.find(({ name }) => scoreName.test(name) && !labelName.test(name)) ??
    (isByType ? byType[0] : undefined)
  const labels = beside.find(({ name }) => labelName.test(name)) ?? (isByType ? byType[1] : undefined)
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

function isWhole(output: ModelTensor | undefined): boolean {
  return output?.type === 'int64' || output?.type === 'int32'
}

/** Those that no name speaks of: the only output of rows of four numbers. */
function onlyBoxes(outputs: readonly ModelTensor[]): ModelTensor | undefined {
  const [boxes, ...others] = outputs.filter(
    ({ shape }) => shape.at(-1) === 4 && (shape.length === 2 || shape.length === 3),
  )
  return others.length === 0 ? boxes : undefined
}

/** Scores of classes for each of `rows`, and how many classes. */
function scoresBeside(
  outputs: readonly ModelTensor[],
  boxes: ModelTensor,
  isNamed: (name: string) => boolean,
): Readonly<{ scores: ModelTensor; columns: number }> | undefined {
  const rows = boxes.shape[1]
  for (const scores of outputs) {
    const { name, shape } = scores
    if (scores === boxes || shape.length !== 3 || !isNamed(name)) continue
    const columns = shape[1] === rows ? shape[2] : shape[2] === rows ? shape[1] : undefined
    if (typeof columns === 'number') return { scores, columns }
  }
  return undefined
}

/** Strides of grids that have a cell for each of so many rows, whichever way partial cells are counted. */
function stridesOfRows(input: SizePx, rows: number | string | undefined): readonly number[] | undefined {
  if (typeof rows !== 'number') return undefined
  const up = [
    [8, 16, 32],
    [8, 16, 32, 64],
  ].find((strides) => cellsIn(strides.map((stride) => gridOf(input, stride))) === rows)
  return up ?? stridesFor(input, rows, 1)
}

/** A row of scores beside each box. */
function rowsOfScores(clues: SeveralClues): FoundHead | undefined {
  const { input, outputs, names: labels, settings } = clues
  const boxes = boxesOf(outputs) ?? (outputs.length === 2 ? onlyBoxes(outputs) : undefined)
  if (boxes?.shape.length !== 3) return undefined
  const strides = stridesOfRows(input, boxes.shape[1])
  const named = scoresBeside(outputs, boxes, (name) => scoreName.test(name) || /logit/i.test(name))
  const isDecoded = strides !== undefined && (settings.options.background ?? 'none') === 'none'
  const found =
    named ?? (isDecoded && outputs.length === 2 ? scoresBeside(outputs, boxes, () => true) : undefined)
  if (found === undefined) return undefined
  const { scores, columns } = found
  // Names say nothing then: four scores of NanoDet look like boxes.
  if (named === undefined && clues.counts?.includes(columns) === false) return undefined
  const names = `outputs "${scores.name}" and "${boxes.name}"`
  if (/logit/i.test(scores.name)) return detr(scores, boxes, columns, clues, names)
  if (isDecoded)
    return {
      kind: 'ssd',
      outputs: [scores, boxes],
      classes: columns,
      columns,
      reason: `${names} have a row for each cell of strides ${strides.join(', ')}: decoded boxes in pixels, no background (YOLO-NAS, PP-YOLOE, PicoDet)`,
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
): FoundHead {
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

/** Two or three outputs of cells, each half as fine as the one before. */
function rawGrids({ input, outputs, counts = [], settings }: SeveralClues): FoundHead | undefined {
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
