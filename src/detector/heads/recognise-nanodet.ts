import { describeTensor, type ModelTensor } from '../../tensors/tensor.js'
import { HeadUnknownError } from '../errors.js'
import { type CellGrid, type CellLayout, cellLayouts, gridOf, numbersOf } from './cell-layout.js'
import type { FoundHead, SeveralClues } from './several-clues.js'

const usualStrides: readonly (readonly number[])[] = [
  [8, 16, 32],
  [8, 16, 32, 64],
]

/** Bins of distances that NanoDet is trained with, all four sides together: its `reg_max` is 7, 10 or 16. */
const usualBins = [32, 44, 68]
/** Of the models that are published, whose classes are COCO's. */
const publishedBins = 32
const publishedClasses = 80
const yolov8Bins = 64

const distanceName = /dis|reg|box/i
/** Names that NanoDet gives its outputs. */
const nanodetName = /(?:cls|dis)_pred/i

/** Outputs that have numbers for each cell of the grids, all in one layout. */
type Cells = Readonly<{ strides: readonly number[]; layout: CellLayout; grids: readonly CellGrid[] }>

/**
 * NanoDet and PicoDet by the shapes of their outputs, whatever their names: scores and distances of each stride, in two outputs or beside
 * each other, or of all strides one after another.
 *
 * @throws HeadUnknownError where shapes fit that do not tell scores from distances, naming the setting that does
 */
export function nanodet(clues: SeveralClues): FoundHead | undefined {
  const { settings, input } = clues
  const all = settings.strides === undefined ? usualStrides : [settings.strides]
  for (const strides of all)
    for (const layout of cellLayouts) {
      const cells = { strides, layout, grids: strides.map((stride) => gridOf(input, stride)) }
      const found = apart(clues, cells) ?? beside(clues, cells)
      if (found !== undefined) return found
    }
  return undefined
}

/** Scores and distances in outputs of their own. */
function apart(clues: SeveralClues, cells: Cells): FoundHead | undefined {
  const { grids, strides, layout } = cells
  const levels = levelsOf(clues.outputs, cells, 2)
  const [first] = levels ?? []
  const widths = first?.map(({ numbers }) => numbers)
  if (levels === undefined || widths === undefined || !levels.every((level) => isAlike(level, widths)))
    return undefined
  const outputs = levels.map((level) => level.map(({ output }) => output))
  const classes = classesOf(clues, widths as [number, number], outputs)
  if (classes === undefined) return undefined
  const bins = widths[0] === classes ? widths[1]! : widths[0]!
  const isOrdered = clues.settings.outputs !== undefined
  const ordered = levels.flatMap((level) => scoresFirst(level, classes, bins, isOrdered))
  const isNanodet = ordered.some(({ name }) => nanodetName.test(name))
  // So many are those of YOLOv8, whose pictures are made otherwise.
  if (bins === yolov8Bins && clues.explicit === undefined && !isNanodet) return undefined
  return {
    kind: strides.length === 4 && !isNanodet ? 'picodet' : 'nanodet',
    outputs: ordered,
    classes,
    columns: classes,
    strides,
    cellLayout: layout,
    reason: `scores of ${classes} classes and ${bins} numbers of distances for each cell of the strides ${strides.join(', ')}, by the shapes of ${levels.length === grids.length ? 'an output of each' : 'two outputs'}`,
    options: { regMax: bins / 4 - 1, offset: 0.5 },
  }
}

/** Scores and distances beside each other, in one output or in one for each stride. */
function beside(clues: SeveralClues, cells: Cells): FoundHead | undefined {
  const { strides, layout } = cells
  const levels = levelsOf(clues.outputs, cells, 1)
  const [[{ numbers }] = [{ numbers: 0 }]] = (levels ?? []) as [[Numbered]]
  if (levels === undefined || !levels.every(([level]) => level!.numbers === numbers)) return undefined
  const classes = classesBeside(clues, numbers, strides, layout)
  if (classes === undefined) return undefined
  const bins = numbers - classes
  return {
    kind: 'nanodet',
    outputs: levels.flatMap((level) => level.map(({ output }) => output)),
    classes,
    columns: classes,
    strides,
    cellLayout: layout,
    reason: `${classes} scores and ${bins} numbers of distances beside each other for each cell of the strides ${strides.join(', ')}`,
    options: { regMax: bins / 4 - 1 },
  }
}

type Numbered = Readonly<{ output: ModelTensor; numbers: number }>

/** For each stride, or for all together, so many outputs that have its cells; every output is one of them. */
function levelsOf(
  outputs: readonly ModelTensor[],
  { grids, layout }: Cells,
  each: 1 | 2,
): readonly (readonly Numbered[])[] | undefined {
  const having = (wanted: readonly CellGrid[]) =>
    outputs.flatMap((output): Numbered[] => {
      const numbers = numbersOf(output.shape, layout, wanted)
      return typeof numbers === 'number' ? [{ output, numbers }] : []
    })
  const together = [having(grids)]
  const found = outputs.length === each ? together : grids.map((grid) => having([grid]))
  const isWhole = found.every((level) => level.length === each) && outputs.length === found.length * each
  return isWhole ? found : undefined
}

function isAlike(level: readonly Numbered[], widths: readonly number[]): boolean {
  const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b).join()
  return sorted(level.map(({ numbers }) => numbers)) === sorted(widths)
}

/** The one with as many numbers as classes first; of two alike, the one whose name does not speak of distances. */
function scoresFirst(
  [a, b]: readonly Numbered[],
  classes: number,
  bins: number,
  isOrdered: boolean,
): readonly ModelTensor[] {
  const isFirst = isOrdered || !distanceName.test(a!.output.name)
  const isScores = classes === bins ? isFirst : a!.numbers === classes
  return (isScores ? [a!, b!] : [b!, a!]).map(({ output }) => output)
}

/**
 * Which of two widths is that of the scores: by what is set, the labels, what distances can be, and names, in this order.
 *
 * @returns `undefined` where neither can be that of distances.
 */
function classesOf(
  clues: SeveralClues,
  widths: readonly [number, number],
  outputs: readonly (readonly ModelTensor[])[],
): number | undefined {
  const [a, b] = widths
  const { counts, settings, explicit } = clues
  const { regMax } = settings.options
  const isSet = explicit !== undefined
  const wanted = settings.classes
  let ways = [
    { classes: a, bins: b },
    { classes: b, bins: a },
  ].filter(
    ({ classes, bins }) =>
      areBins(bins) &&
      (wanted === undefined || classes === wanted) &&
      (regMax === undefined || bins === 4 * (regMax + 1)),
  )
  const narrow = (fits: (way: { classes: number; bins: number }) => boolean) => {
    const fitting = ways.filter(fits)
    if (fitting.length > 0) ways = fitting
  }
  if (settings.outputs !== undefined) narrow(({ classes }) => classes === a)
  narrow(({ classes }) => counts?.includes(classes) === true)
  narrow(({ bins }) => usualBins.includes(bins))
  const named = outputs.map((level) => level.filter(({ name }) => distanceName.test(name)))
  const areNamed = named.every((level) => level.length === 1)
  if (a === b) {
    if (ways.length === 0 || !(isSet || usualBins.includes(a))) return undefined
    if (areNamed || settings.outputs !== undefined) return a
    throw ambiguous(clues, outputs, widths, 'gantry.head_outputs')
  }
  if (areNamed) narrow(({ bins }) => named.every(([output]) => output!.shape.includes(bins)))
  if (ways.length > 1 && !isSet && !ways.some(({ bins }) => usualBins.includes(bins))) return undefined
  if (ways.length > 1) throw ambiguous(clues, outputs, widths, 'gantry.head_classes')
  return ways[0]?.classes
}

/** Four sides of at least two bins. */
function areBins(numbers: number): boolean {
  return numbers >= 8 && numbers % 4 === 0
}

/** How many of the numbers of a cell are scores: by what is set, the labels, or as the published models have it. */
function classesBeside(
  clues: SeveralClues,
  numbers: number,
  strides: readonly number[],
  layout: CellLayout,
): number | undefined {
  const { counts, settings, explicit } = clues
  const { regMax } = settings.options
  const asSet = settings.classes ?? (regMax === undefined ? undefined : numbers - 4 * (regMax + 1))
  const isNamed = explicit === 'nanodet' || explicit === 'picodet'
  const byLabels = counts?.find((count) => usualBins.includes(numbers - count))
  const published = numbers - publishedBins
  const usual = isNamed || (published === publishedClasses && layout === 'rows') ? published : undefined
  const classes = asSet ?? byLabels ?? (counts === undefined || isNamed ? usual : undefined)
  if (classes !== undefined) return classes >= 1 && areBins(numbers - classes) ? classes : undefined
  // Read as YOLOX, it would give boxes of nothing, or none.
  const isDoubtful =
    explicit === undefined && counts === undefined && layout === 'rows' && strides.length === 4
  if (!isDoubtful || published < 1 || numbers === 5 + publishedClasses) return undefined
  throw new HeadUnknownError(
    `model "${clues.model}": output "${clues.outputs[0]?.name ?? ''}" has ${numbers} numbers for each cell of the strides ${strides.join(', ')}, which may be ${published} classes of NanoDet or ${numbers - 5} of YOLOX`,
    'Add a labels.txt, or set gantry.head to "nanodet" or "yolox" in config.pbtxt.',
  )
}

function ambiguous(
  clues: SeveralClues,
  outputs: readonly (readonly ModelTensor[])[],
  [a, b]: readonly [number, number],
  key: 'gantry.head_outputs' | 'gantry.head_classes',
): HeadUnknownError {
  const names = outputs.flat().map(({ name }) => `"${name}"`)
  const hint =
    key === 'gantry.head_classes'
      ? `Add a labels.txt, or set gantry.head_classes to "${a}" or "${b}" in config.pbtxt.`
      : 'Set gantry.head_outputs in config.pbtxt to their names in the order scores, distances of each stride, with gantry.head "nanodet" or "picodet".'
  return new HeadUnknownError(
    `model "${clues.model}": outputs ${names.join(', ')} have ${a} and ${b} numbers for each cell, and neither shapes, names nor labels tell which are scores and which are distances`,
    hint,
  )
}

/** What is set of outputs whose shapes do not tell it. @throws HeadUnknownError naming the setting that is missing, or is wrong */
export function asSetNanodet(
  named: readonly ModelTensor[],
  { model, counts, settings }: SeveralClues,
): Partial<FoundHead> {
  const { strides, classes = counts?.[0], outputs } = settings
  const isTold = named.every(({ shape }) => shape.slice(1).every((size) => typeof size === 'number'))
  const wrong =
    strides === undefined || isTold ? 'gantry.head_strides' : classes === undefined && 'gantry.head_classes'
  if (wrong === false) return { classes, options: outputs?.length === 1 ? {} : { offset: 0.5 } }
  const cells = strides?.join(', ') ?? '8, 16, 32 and perhaps 64'
  throw new HeadUnknownError(
    `model "${model}": outputs ${named.map((output) => `"${output.name}" ${describeTensor(output)}`).join(', ')} are not those of NanoDet or PicoDet with cells of the strides ${cells}`,
    `Set ${wrong} in config.pbtxt to what the model was trained with.`,
  )
}
