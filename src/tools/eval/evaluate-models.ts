import type { PictureScorer } from '../scoring/picture-scorer.js'
import { certaintyOf } from './compare-models.js'
import { type Evaluation, evaluationOf, type EvaluationSettings, type ScoredRun } from './evaluation.js'
import type { LabelledSet } from './labelled-set.js'
import { runModel } from './model-run.js'
import { scoresOf } from './model-scores.js'
import { type ClassWish, scoredClasses } from './scored-classes.js'

export type EvaluateOptions = Readonly<{
  set: LabelledSet
  wish: ClassWish
  settings: EvaluationSettings
  /** Pictures at the same time; what keeps a scorer busy without it. */
  atOnce?: number
  /** Ends it with what has been scored. */
  signal: AbortSignal
  onPicture?: (scorer: PictureScorer, done: number) => void
}>

export type EvaluatedModels = Readonly<{
  /** Of the models that scored anything; undefined where none did. */
  evaluation: Evaluation | undefined
  runs: readonly ScoredRun[]
  /** What ended it before its time, beside the signal. */
  failure: Error | undefined
}>

/**
 * Scores a set by models one after another, and says what each is worth. When one fails, the others do not begin, and what there is is told.
 *
 * @param scorers - the first is what the others are compared with; the caller stops them.
 * @throws LabelsError `GANTRY_LABELS` where set and models have no class in common; NoPictureError `GANTRY_IMAGE_INVALID`
 */
export async function evaluateModels(
  scorers: readonly PictureScorer[],
  { set, wish, settings, atOnce, signal, onPicture }: EvaluateOptions,
): Promise<EvaluatedModels> {
  const labelsOfEach = scorers.map(({ info }) => info.labels)
  const classes = scoredClasses(set.classes, labelsOfEach, wish)
  const runs: ScoredRun[] = []
  let failure: Error | undefined
  for (const scorer of scorers) {
    if (signal.aborted || failure !== undefined) break
    const run = await runModel(scorer, set, classes, {
      ...(atOnce !== undefined && { atOnce }),
      signal,
      onPicture: (done) => onPicture?.(scorer, done),
    })
    failure = run.failure
    if (run.samples.size === 0) continue
    const scores = scoresOf(run, {
      labels: classes.labels,
      shownScore: settings.shownScore,
      ...(settings.wantedPrecision !== undefined && { wantedPrecision: settings.wantedPrecision }),
      atOnce: atOnce ?? scorer.info.atOnce,
    })
    runs.push({ run, scores })
  }
  if (runs.length === 0) return { evaluation: undefined, runs, failure }
  const { bootstrapDraws: draws, seed } = settings
  const certainty =
    draws === 0 || signal.aborted
      ? undefined
      : await certaintyOf(
          runs.map(({ run }) => run),
          runs.map(({ scores }) => scores),
          { draws, seed, signal },
        )
  const isWhole = runs.length === scorers.length && failure === undefined
  return { evaluation: evaluationOf(set, classes, settings, runs, certainty, isWhole), runs, failure }
}
