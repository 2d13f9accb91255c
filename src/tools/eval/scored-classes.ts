import { suggestion } from '../../config/suggest.js'
import { LabelsError } from './labels-error.js'

/** Which classes of a set are compared with which labels of the models. */
export type ScoredClasses = Readonly<{
  /** Labels that are scored, in the order of the set's classes. */
  labels: readonly string[]
  /** For each class of the set, the place of its label in that list; undefined: its boxes are left out. */
  placeOf: readonly (number | undefined)[]
  /** What is left out on either side, a sentence each. */
  notes: readonly string[]
}>

export type ClassWish = Readonly<{
  /** Only these, by label or by the set's name: a set may not label others completely. */
  only?: readonly string[]
  /** Label that stands for a class of the set, where the names differ. Several classes may become one label. */
  map: ReadonlyMap<string, string>
}>

/**
 * Compares names without regard to case, spaces, `-` and `_`.
 *
 * @param classes - of the set.
 * @param models - the labels of each model; a class is scored that all of them have.
 * @throws LabelsError `GANTRY_LABELS` for names that neither side has, and where nothing is left to score.
 */
export function scoredClasses(
  classes: readonly string[],
  models: readonly (readonly string[])[],
  { only, map }: ClassWish,
): ScoredClasses {
  const [first = [], ...others] = models
  const known = first.filter((label) => others.every((labels) => labels.some((other) => alike(other, label))))
  checkMap(map, classes, known)
  const wanted = only?.map((name) => wantedLabel(name, classes, known, map))
  const labelOf = classes.map((name) => labelFor(name, known, map))
  const scored = labelOf.map((label) =>
    label !== undefined && (wanted === undefined || wanted.includes(label)) ? label : undefined,
  )
  const labels = [...new Set(scored.filter((label) => label !== undefined))]
  if (labels.length === 0)
    throw new LabelsError(
      `no class of the set is a label of the model: the set has ${classes.join(', ')}; the model has ${known.join(', ')}`,
      'Say which is which with --map "CLASS OF THE SET=LABEL".',
    )
  return {
    labels,
    placeOf: scored.map((label) => (label === undefined ? undefined : labels.indexOf(label))),
    notes: [
      ...unknownNotes(classes.filter((_, index) => labelOf[index] === undefined)),
      ...maskedNotes(labelOf, scored),
      ...unlabelledNotes(known.filter((label) => !labelOf.includes(label))),
      ...notSharedNotes(first, known),
    ],
  }
}

function labelFor(name: string, known: readonly string[], map: ClassWish['map']): string | undefined {
  const mapped = map.get(name)
  return known.find((label) => (mapped === undefined ? alike(label, name) : label === mapped))
}

function checkMap(map: ClassWish['map'], classes: readonly string[], known: readonly string[]): void {
  for (const [name, label] of map) {
    if (!classes.includes(name)) throw unknown(`--map ${name}=${label}: the set has no class`, name, classes)
    if (!known.includes(label)) throw unknown(`--map ${name}=${label}: the model has no label`, label, known)
  }
}

function wantedLabel(
  name: string,
  classes: readonly string[],
  known: readonly string[],
  map: ClassWish['map'],
): string {
  const asLabel = known.find((label) => alike(label, name))
  const asClass = classes.find((each) => alike(each, name))
  const label = asLabel ?? (asClass === undefined ? undefined : labelFor(asClass, known, map))
  if (label === undefined) throw unknown('--classes: nothing is called', name, [...known, ...classes])
  if (classes.some((each) => labelFor(each, known, map) === label)) return label
  throw new LabelsError(
    `--classes ${name}: the set does not label "${label}"; it has ${classes.join(', ')}`,
    'Leave it out, or say which class of the set it is with --map.',
  )
}

function unknown(what: string, name: string, names: readonly string[]): LabelsError {
  return new LabelsError(
    `${what} "${name}"`,
    suggestion(name, names)?.replace(/^./, (letter) => letter.toUpperCase()) ?? 'Correct the name.',
  )
}

function unknownNotes(names: readonly string[]): readonly string[] {
  return names.length === 0
    ? []
    : [`the model has no label for ${quoted(names)} of the set: not scored (--map says which is which)`]
}

function maskedNotes(
  labelOf: readonly (string | undefined)[],
  scored: readonly (string | undefined)[],
): readonly string[] {
  const masked = new Set(labelOf.filter((label, index) => label !== undefined && scored[index] === undefined))
  return masked.size === 0 ? [] : [`${quoted([...masked] as string[])}: left out by --classes`]
}

function unlabelledNotes(labels: readonly string[]): readonly string[] {
  return labels.length === 0
    ? []
    : [`the set does not label ${quoted(labels)}: what the model finds of it is not scored`]
}

function notSharedNotes(first: readonly string[], known: readonly string[]): readonly string[] {
  const alone = first.filter((label) => !known.includes(label))
  return alone.length === 0 ? [] : [`not every model has ${quoted(alone)}: not scored`]
}

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ')
const plain = (name: string) => name.toLowerCase().replace(/[\s_-]+/g, '_')

/** Whether two names are one but for case, spaces, `-` and `_`. */
export function alike(a: string, b: string): boolean {
  return plain(a) === plain(b)
}
