import { readFile } from 'node:fs/promises'
import type { InferenceConfig } from '../../config/inference.js'
import type { Log } from '../../lifecycle/log.js'
import { agreementOf } from '../../vision/agreement.js'
import type { Detection } from '../../vision/detection.js'
import { evaluateModels } from '../eval/evaluate-models.js'
import type { LabelledSet } from '../eval/labelled-set.js'
import type { ClassWish } from '../eval/scored-classes.js'
import type { PictureScorer } from '../scoring/picture-scorer.js'
import { openRepositoryScorer } from '../scoring/repository-scorer.js'
import type { ModelForm } from './model-forms.js'
import { OptimizeSettingError } from './optimize-errors.js'

/** What the accuracy of a form is told by: labels, or what the model as it is finds. */
export type AccuracyMeasure =
  | Readonly<{ kind: 'map'; set: LabelledSet; wish: ClassWish }>
  /** @see agreementOf */
  | Readonly<{ kind: 'agreement'; pictures: readonly string[]; from: string }>

/** 0..1 */
export type FormAccuracy = Readonly<{
  kind: AccuracyMeasure['kind']
  value: number
  /** Pictures that it was measured on. */
  pictures: number
}>

export type AccuracySetting = Readonly<{
  /** Repository of the forms. */
  folder: string
  inference: InferenceConfig
  log: Log
  signal: AbortSignal
  onPicture(done: number): void
}>

/** Of detections that count for mAP; those that agree are the ones that are served. */
const mapLimits = { scoreThreshold: 0.001 }
/** Draws and curves are for reports of their own. */
const evaluation = { ...mapLimits, shownScore: 0.3, bootstrapDraws: 0, seed: 1 }

const drainMs = 1_000

/**
 * Measures a form as cameras run it.
 *
 * @param expected - what the model as it is finds in each picture; for {@link AccuracyMeasure} `agreement` alone.
 * @throws LabelsError, ModelConfigError, HeadUnknownError and others where it is no detector; AbortError after the signal
 */
export async function accuracyOf(
  form: ModelForm,
  measure: AccuracyMeasure,
  setting: AccuracySetting,
  expected: readonly (readonly Detection[])[] | undefined,
): Promise<FormAccuracy> {
  if (measure.kind === 'map') return mapOf(form, measure, setting)
  const found = await detectionsOf(form, measure, setting)
  const { agreement } = agreementOf(
    found.map((after, index) => ({ before: (expected ?? found)[index] ?? [], after })),
  )
  return { kind: 'agreement', value: agreement ?? 1, pictures: found.length }
}

/** What a form finds in each picture, as it is served. */
export async function detectionsOf(
  form: ModelForm,
  { pictures }: Extract<AccuracyMeasure, { kind: 'agreement' }>,
  setting: AccuracySetting,
): Promise<readonly (readonly Detection[])[]> {
  return withScorer(form, setting, {}, async (scorer) => {
    const found = new Array<readonly Detection[]>(pictures.length)
    let next = 0
    const lane = async (): Promise<void> => {
      for (let at = next++; at < pictures.length; at = next++) {
        setting.signal.throwIfAborted()
        const scored = await scorer.score({ kind: 'file', bytes: await readFile(pictures[at]!) })
        found[at] = scored.detections
        setting.onPicture(at + 1)
      }
    }
    await Promise.all(Array.from({ length: Math.min(scorer.info.atOnce, pictures.length) }, lane))
    return found
  })
}

async function mapOf(
  form: ModelForm,
  { set, wish }: Extract<AccuracyMeasure, { kind: 'map' }>,
  setting: AccuracySetting,
): Promise<FormAccuracy> {
  return withScorer(form, setting, mapLimits, async (scorer) => {
    const { signal, onPicture } = setting
    const scored = await evaluateModels([scorer], {
      set,
      wish,
      settings: evaluation,
      signal,
      onPicture: (_, done) => onPicture(done),
    })
    signal.throwIfAborted()
    if (scored.failure !== undefined) throw scored.failure
    const [model] = scored.evaluation?.models ?? []
    const value = model?.summary.map
    if (model === undefined || value === undefined)
      throw new OptimizeSettingError(
        `${set.name} has nothing of the classes that the model finds`,
        'Name another set with --data, or its classes with --classes and --map.',
      )
    return { kind: 'map', value, pictures: model.pictures }
  })
}

async function withScorer<T>(
  { entry }: ModelForm,
  { folder, inference, log }: AccuracySetting,
  limits: Readonly<{ scoreThreshold?: number }>,
  use: (scorer: PictureScorer) => Promise<T>,
): Promise<T> {
  const scorer = await openRepositoryScorer({
    repositories: [folder],
    model: entry,
    inference,
    limits,
    log,
  })
  try {
    return await use(scorer)
  } finally {
    await scorer.stop(drainMs)
  }
}
