import { ModelLabelsError } from '../../repository/errors.js'
import { defaultHeadOptions, type HeadOptions, type HeadPlan } from './head.js'
import type { HeadSettings } from './head-settings.js'
import {
  beginsWithNothing,
  classLines,
  endsWithBackground,
  isCocoWithoutGaps,
  isNumberedWithGaps,
  namesBackground,
} from './label-list.js'

/** What is compared with what a head gives. */
export type Labelling = Readonly<{
  /** Named in errors. */
  model: string
  labels: readonly string[] | undefined
  /** Where they are from, for errors. */
  labelsFrom: string
  settings: HeadSettings
}>

/** A column of scores that stands for nothing. */
type Background = HeadOptions['background']

/**
 * Finds the line of the label list that each class of a head has, from the number of labels, the number of columns of scores, and where
 * the list names the background.
 *
 * A list may count the background though the model does not, and the other way round; it may keep lines for classes that the model lacks.
 * Where two readings are possible, none is taken.
 *
 * @throws ModelLabelsError `GANTRY_MODEL_LABELS` where the list does not fit, naming the setting that says how it is meant.
 */
export function withClassLines(plan: HeadPlan, labelling: Labelling): HeadPlan {
  return plan.columns === undefined ? ofNumbers(plan, labelling) : ofColumns(plan, plan.columns, labelling)
}

/** A head that gives numbers of classes: nothing tells how many there are, nor where they begin. */
function ofNumbers(plan: HeadPlan, labelling: Labelling): HeadPlan {
  const { labels, settings } = labelling
  const { firstClass: set } = settings.options
  if (labels === undefined) return plan
  const first = set ?? firstNumber(plan, labels, labelling)
  if (first > 0 && beginsWithNothing(labels))
    throw misfit(
      labelling,
      `begins with "${labels[0]}", which would be class ${first}`,
      'Set gantry.head_first_class to the number of the first line: "0" where the list counts the background.',
    )
  if (settings.classes !== undefined && classLines(labels).length !== settings.classes)
    throw misfit(
      labelling,
      `has ${labels.length} labels, but gantry.head_classes is ${settings.classes}`,
      'Leave gantry.head_classes out, or list one label per class.',
    )
  const lines = Array.from({ length: first + labels.length }, (_, number) => lineOr(labels, number - first))
  return { ...plan, lines, options: { ...optionsOf(plan), firstClass: first } }
}

function firstNumber(plan: HeadPlan, labels: readonly string[], labelling: Labelling): number {
  const { firstClass, background } = optionsOf(plan)
  const usual = Math.max(firstClass, background === 'first' ? 1 : 0)
  if (usual > 0 && isCocoWithoutGaps(labels))
    throw misfit(
      labelling,
      'has the 80 names of COCO, whose numbers from 1 to 90 have gaps in such models',
      'Write N/A on the lines of the numbers that COCO leaves out (12, 26, 29, ...), or set gantry.head_first_class to "1" where the model has no gaps.',
    )
  if (!beginsWithNothing(labels)) return usual
  if (usual > 0) return usual - 1
  throw misfit(
    labelling,
    `begins with "${labels[0]}", and the model does not tell whether it counts that too`,
    `Set gantry.head_first_class to "0" if the model's class 1 is "${labels[1] ?? ''}", or to "-1" if its class 0 is.`,
  )
}

/** A head with a column of scores for each class, and perhaps one for the background. */
function ofColumns(plan: HeadPlan, columns: number, labelling: Labelling): HeadPlan {
  const { labels, settings } = labelling
  const options = optionsOf(plan)
  const { background } = options
  const set = settings.options.firstClass
  let lines: readonly number[]
  if (labels !== undefined && set === undefined) lines = columnLines(plan, columns, labels, labelling)
  else lines = shifted(columns, -(set ?? (background === 'first' ? 1 : 0)))
  if (labels !== undefined && set !== undefined) checkSet(plan, columns, set, labels, labelling)
  const at = lines.findIndex((line) => line >= 0)
  return {
    ...plan,
    lines: lines.map((line, column) =>
      isBackground(column, columns, background) ? -1 : labels === undefined ? line : lineOr(labels, line),
    ),
    options: { ...options, firstClass: at - (lines[at] ?? 0) },
  }
}

function shifted(columns: number, by: number): readonly number[] {
  return Array.from({ length: columns }, (_, column) => column + by)
}

/** The line of each column, where the numbers of both leave one reading. */
function columnLines(
  plan: HeadPlan,
  columns: number,
  labels: readonly string[],
  labelling: Labelling,
): readonly number[] {
  const { background } = optionsOf(plan)
  const isSet = labelling.settings.options.background !== undefined
  const nothingFirst = beginsWithNothing(labels)
  const nothingLast = endsWithBackground(labels)
  const begin = background === 'first' ? 1 : 0
  const open = columns - (background === 'none' ? 0 : 1)
  if (labels.length === columns) {
    if (countsAll(plan, isSet, labels)) return shifted(columns, 0)
  } else if (background !== 'none' && labels.length === open) {
    if (!nothingLast && !(nothingFirst && background === 'first')) return shifted(columns, -begin)
  } else if (background === 'none' && labels.length === columns + 1 && nothingFirst !== nothingLast) {
    return shifted(columns, nothingFirst ? 1 : 0)
  }
  const named = classLines(labels)
  if (labels.length > columns && named.length === open)
    return shifted(columns, -begin).map((index) => named[index] ?? -1)
  throw unfitting(plan, columns, labels, labelling)
}

/** Whether a list with as many lines as there are columns has one for each of them, the background's among them. */
function countsAll(plan: HeadPlan, isSet: boolean, labels: readonly string[]): boolean {
  const nothingFirst = beginsWithNothing(labels)
  const nothingLast = endsWithBackground(labels)
  switch (optionsOf(plan).background) {
    case 'first':
      return (nothingFirst || isSet) && !nothingLast
    case 'last':
      return nothingLast || (isSet && !nothingFirst)
    default:
      // Logits of DETR have nothing last, those of RT-DETR have no such column: a list that has it first is of neither.
      return plan.kind !== 'detr' || isSet || !nothingFirst || isNumberedWithGaps(labels)
  }
}

/** `gantry.head_first_class` leaves no column without a name, and no name without a column. */
function checkSet(
  plan: HeadPlan,
  columns: number,
  first: number,
  labels: readonly string[],
  labelling: Labelling,
): void {
  const { background } = optionsOf(plan)
  const end = first + labels.length
  const lacks = columns - (background === 'last' ? 1 : 0) - end
  const surplus = end - columns - (endsWithBackground(labels) ? 1 : 0)
  const isShifted = first > 0 && beginsWithNothing(labels)
  if (lacks <= 0 && surplus <= 0 && !isShifted) return
  throw misfit(
    labelling,
    `has ${labels.length} labels${endsOf(labels)}, which from column ${first} on do not fit the ${columns} columns of output "${plan.output}"`,
    'Set gantry.head_first_class to the column of the first label, -1 if it has none, and list a label for each column after it; N/A for one that is not used.',
  )
}

function unfitting(
  plan: HeadPlan,
  columns: number,
  labels: readonly string[],
  labelling: Labelling,
): ModelLabelsError {
  const { background } = optionsOf(plan)
  const classes = columns - (background === 'none' ? 0 : 1)
  const beside = background === 'none' ? '' : `, and a column of background ${background}`
  return misfit(
    labelling,
    `has ${labels.length} labels${endsOf(labels)}, but output "${plan.output}" has ${classes} classes${beside}`,
    labels.length === columns - 1 || labels.length === columns
      ? 'List one label per class, in the order the model was trained with; set gantry.head_background to the column that stands for nothing, "first", "last" or "none".'
      : 'List one label per class, in the order the model was trained with; gantry.head_first_class is the column of the first one, gantry.head_background the one that stands for nothing.',
  )
}

function misfit({ model, labelsFrom }: Labelling, problem: string, hint: string): ModelLabelsError {
  return new ModelLabelsError(`model "${model}": ${labelsFrom} ${problem}`, hint)
}

function endsOf(labels: readonly string[]): string {
  const first = beginsWithNothing(labels) ? [`the first of them "${labels[0]}"`] : []
  const last = endsWithBackground(labels) ? [`the last "${labels.at(-1)}"`] : []
  return [...first, ...last].map((end) => `, ${end}`).join('')
}

/** What names the background is no class. */
function lineOr(labels: readonly string[], line: number): number {
  const label = labels[line]
  return label === undefined || namesBackground(label) ? -1 : line
}

function isBackground(column: number, columns: number, background: Background): boolean {
  return (background === 'first' && column === 0) || (background === 'last' && column === columns - 1)
}

function optionsOf({ options }: HeadPlan): HeadOptions {
  return options ?? defaultHeadOptions
}
