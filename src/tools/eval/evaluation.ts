import type { ErrorRecord } from '../../errors.js'
import { toErrorRecord } from '../../errors.js'
import type { ScorerInfo } from '../scoring/picture-scorer.js'
import type { Interval } from './bootstrap.js'
import type { CocoSummary } from './coco-scores.js'
import type { Certainty, Difference } from './compare-models.js'
import type { LabelledSet } from './labelled-set.js'
import type { ModelRun, UnreadPicture } from './model-run.js'
import type { ClassScores, ModelScores, Speed } from './model-scores.js'
import type { ScoredClasses } from './scored-classes.js'

/** What one model is worth on a set, as programs read it. Shares are 0..1. */
export type ModelEvaluation = Readonly<{
  model: ScorerInfo
  pictures: number
  /** What was asked of it was done: no signal, no failure. */
  complete: boolean
  unread: readonly UnreadPicture[]
  error?: ErrorRecord
  seconds: number
  speed: Speed
  summary: CocoSummary
  /** 95 % of the mAP over other pictures of the same kind. */
  mapInterval?: Interval
  /** Against the first model. */
  difference?: Difference
  classes: readonly ClassScores[]
  /** Rows are what is there, columns what was found; the last of each is nothing. */
  confusion: readonly (readonly number[])[]
}>

/** The whole answer of `gantry eval`. */
export type Evaluation = Readonly<{
  set: Readonly<{ name: string; format: LabelledSet['format']; pictures: number; classes: readonly string[] }>
  /** Labels that were scored. */
  labels: readonly string[]
  notes: readonly string[]
  settings: EvaluationSettings
  complete: boolean
  models: readonly ModelEvaluation[]
}>

export type EvaluationSettings = Readonly<{
  /** Detections under it were not asked for. */
  scoreThreshold: number
  /** Absent: what the model or the pipeline file says. */
  iouThreshold?: number
  maxDetections?: number
  shownScore: number
  wantedPrecision?: number
  bootstrapDraws: number
  seed: number
}>

/** A run and what it is worth, where it has scored anything. */
export type ScoredRun = Readonly<{ run: ModelRun; scores: ModelScores }>

/** @param certainty - of the same runs. */
export function evaluationOf(
  set: LabelledSet,
  classes: ScoredClasses,
  settings: EvaluationSettings,
  runs: readonly ScoredRun[],
  certainty: Certainty | undefined,
  isWhole: boolean,
): Evaluation {
  const total = set.pictures.length
  const models = runs.map(({ run, scores }, index): ModelEvaluation => {
    const mapInterval = certainty?.maps[index]
    const difference = certainty?.differences[index - 1]
    return {
      model: run.info,
      pictures: run.samples.size,
      complete: run.samples.size + run.unread.length === total,
      unread: run.unread,
      ...(run.failure === undefined ? {} : { error: toErrorRecord(run.failure) }),
      seconds: run.seconds,
      speed: scores.speed,
      summary: scores.summary,
      ...(mapInterval && { mapInterval }),
      ...(difference && { difference }),
      classes: scores.classes,
      confusion: scores.confusion,
    }
  })
  return {
    set: { name: set.name, format: set.format, pictures: total, classes: set.classes },
    labels: classes.labels,
    notes: [
      ...set.notes,
      ...classes.notes,
      ...runs.flatMap(({ run, scores }) => runNotes(run, scores, settings)),
    ],
    settings,
    complete: isWhole && models.every(({ complete }) => complete),
    models,
  }
}

function runNotes(
  run: ModelRun,
  { lowestScore }: ModelScores,
  { scoreThreshold }: EvaluationSettings,
): readonly string[] {
  const { info, unread, otherSize } = run
  const notes: string[] = []
  if (unread.length > 0)
    notes.push(
      `${info.name}: ${unread.length} pictures could not be read, such as ${unread[0]!.name}: ${unread[0]!.reason}`,
    )
  if (otherSize.length > 0)
    notes.push(
      `${otherSize.length} pictures have another size than their labels say, such as ${otherSize[0]}`,
    )
  if (lowestScore !== undefined && lowestScore >= Math.max(0.05, 2 * scoreThreshold))
    notes.push(
      `${info.name}: nothing with a score under ${lowestScore.toFixed(2)} came: what the model or server leaves out cannot count, and mAP is lower for it`,
    )
  return notes
}
