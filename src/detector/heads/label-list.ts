/** Words for "there is nothing here", compared without case, spaces and signs. */
const backgroundWords = [
  'background',
  'backgroundclass',
  'bg',
  'bkg',
  'noobject',
  'noobj',
  'unlabeled',
  'unlabelled',
  'hintergrund',
  'фон',
  '背景',
  '배경',
]

/** Whether a label names what is no object: `__background__`, `BG`, `no-object`. */
export function namesBackground(label: string): boolean {
  return backgroundWords.includes(bare(label))
}

/** Whether a line keeps the place of a class that the model does not have: `N/A`, `???`, `-`. */
export function namesNoClass(label: string): boolean {
  const word = bare(label)
  return word === '' || word === 'na'
}

function bare(label: string): string {
  return label.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

/** Name of a class by its line, `undefined` where there is no line or it names none. */
export function labelOf(labels: readonly string[], line: number): string | undefined {
  const label = labels[line]
  return label === undefined || namesNoClass(label) ? undefined : label
}

/** Whether the first line stands for no class. */
export function beginsWithNothing([first]: readonly string[]): boolean {
  return first !== undefined && (namesBackground(first) || namesNoClass(first))
}

/** Whether the last line stands for the background. */
export function endsWithBackground(labels: readonly string[]): boolean {
  const last = labels.at(-1)
  return labels.length > 1 && last !== undefined && namesBackground(last)
}

/** Lines that name a class. */
export function classLines(labels: readonly string[]): readonly number[] {
  return labels.flatMap((label, line) => (namesBackground(label) || namesNoClass(label) ? [] : [line]))
}

/**
 * Numbers of classes that a list may stand for: its lines, those without the background, and those that name a class. The first is the
 * likeliest.
 */
export function countsOf(labels: readonly string[]): readonly number[] {
  const less = beginsWithNothing(labels) !== endsWithBackground(labels) ? [labels.length - 1] : []
  return [...new Set([labels.length, ...less, classLines(labels).length])].filter((count) => count > 0)
}

/** Names that more than one class has. */
export function labelsGivenTwice(labels: readonly string[]): readonly string[] {
  const named = classLines(labels).map((line) => labels[line]!)
  return [...new Set(named.filter((label, index) => named.indexOf(label) !== index))]
}

/** The 80 names of COCO without the gaps that its numbers 1 to 90 have. */
export function isCocoWithoutGaps(labels: readonly string[]): boolean {
  return (
    labels.length === 80 && bare(labels[11] ?? '') === 'stopsign' && bare(labels[79] ?? '') === 'toothbrush'
  )
}

/** Whether the lines are numbers of classes as they were counted in training, some of them of none: COCO's 0 to 90. */
export function isNumberedWithGaps(labels: readonly string[]): boolean {
  return beginsWithNothing(labels) && labels.slice(1).some(namesNoClass)
}
