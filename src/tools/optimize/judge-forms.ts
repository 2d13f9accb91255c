import type { InferenceConfig } from '../../config/inference.js'
import type { Log } from '../../lifecycle/log.js'
import type { Detection } from '../../vision/detection.js'
import { type AccuracyMeasure, accuracyOf, detectionsOf, type FormAccuracy } from './form-accuracy.js'
import type { Journal } from './journal.js'
import type { ModelForm } from './model-forms.js'
import type { FormReport } from './optimize-report.js'

/** What a form must keep of its accuracy, 0..1. */
export type AccuracyLimits = Readonly<{ map?: number; mapDrop?: number; agreement?: number }>

export type JudgeSetting = Readonly<{
  accuracy: Readonly<{ measure: AccuracyMeasure | undefined; limits: AccuracyLimits }>
  /** Repository of the forms. */
  folder: string
  inference: InferenceConfig
  journal: Journal
  log: Log
  signal: AbortSignal
  progress(text: string): void
}>

export type JudgedForms = Readonly<{
  /** Those that are accurate enough; the model as it is, first, is so by itself. */
  forms: readonly ModelForm[]
  reports: readonly FormReport[]
  /** Why others are left out, a sentence each. */
  notes: readonly string[]
}>

/**
 * Measures how accurate forms of a model are; all of them are usable where that cannot be told.
 *
 * @param forms - the model as it is first.
 * @throws what {@link accuracyOf} throws
 */
export async function judgeForms(forms: readonly ModelForm[], setting: JudgeSetting): Promise<JudgedForms> {
  const { accuracy, journal, progress } = setting
  const { measure, limits } = accuracy
  if (measure === undefined)
    return { forms, reports: forms.map(({ name, fileBytes }) => ({ name, fileBytes })), notes: [] }
  const [original] = forms
  const all = measure.kind === 'map' ? measure.set.pictures.length : measure.pictures.length
  const reports: FormReport[] = []
  const kept: ModelForm[] = []
  let expected: readonly (readonly Detection[])[] | undefined
  let first: FormAccuracy | undefined
  for (const form of forms) {
    const { name, fileBytes } = form
    const onPicture = (done: number) => progress(`accuracy of ${name}: ${done} of ${all} pictures`)
    const own = await journal.once(`accuracy ${name}`, async () => {
      if (measure.kind === 'agreement' && original !== undefined && form !== original)
        expected ??= await detectionsOf(original, measure, { ...setting, onPicture })
      return accuracyOf(form, measure, { ...setting, onPicture }, expected)
    })
    first ??= own
    const leftOut = form === original ? undefined : tooFar(own, first, limits)
    reports.push({ name, fileBytes, accuracy: own, ...(leftOut !== undefined && { leftOut }) })
    if (leftOut === undefined) kept.push(form)
  }
  const notes = reports.flatMap(({ name, leftOut }) =>
    leftOut === undefined ? [] : [`${name} is left out: ${leftOut}`],
  )
  return { forms: kept, reports, notes }
}

function tooFar(
  { kind, value }: FormAccuracy,
  original: FormAccuracy,
  { map, mapDrop, agreement }: AccuracyLimits,
): string | undefined {
  if (kind === 'agreement')
    return value < (agreement ?? 0)
      ? `it agrees with the model by ${value.toFixed(3)} of ${agreement}`
      : undefined
  if (value < (map ?? 0)) return `its mAP is ${value.toFixed(4)} of ${map}`
  const lost = original.value - value
  return lost > (mapDrop ?? 1) ? `it loses ${lost.toFixed(4)} of mAP, ${mapDrop} is allowed` : undefined
}
