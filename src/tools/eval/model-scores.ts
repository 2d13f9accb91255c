import { confusionOf } from './confusion.js'
import { iouThresholds, mostDetections } from './coco-match.js'
import {
  type ClassCurves,
  type ClassPictures,
  cocoCurves,
  type CocoSummary,
  cocoSummary,
} from './coco-scores.js'
import type { ModelRun, ScoredSample } from './model-run.js'
import { type AtScore, atScore, scoreForPrecision, type WantedPrecision } from './wanted-precision.js'

export type ClassScores = Readonly<{
  label: string
  /** Things of it on the pictures, crowds not counted. */
  truths: number
  summary: CocoSummary
  /** At the score that is shown. */
  shown: AtScore
  /** The score for the wanted precision, where one was asked for and there is anything to find. */
  wanted?: WantedPrecision
}>

/** Milliseconds of a picture: the median, and the 95th of 100. */
export type Spread = Readonly<{ medianMs: number; p95Ms: number }>

export type Speed = Readonly<{
  picturesPerSecond: number
  decode: Spread
  infer: Spread
  /** Pictures that were scored at the same time: so many share the processor, and each takes longer than alone. */
  atOnce: number
}>

/** What a run is worth. */
export type ModelScores = Readonly<{
  summary: CocoSummary
  classes: readonly ClassScores[]
  /** What was taken for what, by {@link confusionOf}. */
  confusion: readonly (readonly number[])[]
  speed: Speed
  curves: readonly ClassCurves[]
  /** Lowest score of all that was found; undefined where nothing was. */
  lowestScore: number | undefined
}>

export type ScoreOptions = Readonly<{
  labels: readonly string[]
  /** Score at which precision, recall and confusion are told. */
  shownScore: number
  /** 0..1 */
  wantedPrecision?: number
  atOnce: number
}>

/** @param run - with one sample at least. */
export function scoresOf(
  run: ModelRun,
  { labels, shownScore, wantedPrecision, atOnce }: ScoreOptions,
): ModelScores {
  const samples = [...run.samples.values()]
  const curves = cocoCurves(byClass(samples, labels.length))
  const found = samples.flatMap((sample) => sample.found.map(({ score }) => score))
  return {
    summary: cocoSummary(curves),
    classes: curves.map((each, index) => {
      const wanted =
        wantedPrecision === undefined ? undefined : scoreForPrecision(each.ranking, wantedPrecision)
      return {
        label: labels[index]!,
        truths: each.ranking.positives,
        summary: cocoSummary([each]),
        shown: atScore(each.ranking, shownScore),
        ...(wanted && { wanted }),
      }
    }),
    confusion: confusionOf(samples, labels.length, shownScore),
    speed: {
      picturesPerSecond: (run.samples.size + run.unread.length) / run.seconds,
      decode: spread(samples.map(({ decodeMs }) => decodeMs)),
      infer: spread(samples.map(({ inferMs }) => inferMs)),
      atOnce,
    },
    curves,
    lowestScore: found.length === 0 ? undefined : found.reduce((low, score) => Math.min(low, score), 1),
  }
}

function byClass(samples: readonly ScoredSample[], classes: number): ClassPictures {
  return Array.from({ length: classes }, (_, place) =>
    samples.map(({ truths, found }) => ({
      truths: truths.filter((truth) => truth.class === place),
      found: found.filter((box) => box.class === place),
    })),
  )
}

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return { medianMs: at(0.5), p95Ms: at(0.95) }
}

/** Precision at the 101 recalls, at IoU 0.5; undefined where nothing is to be found. */
export function shownCurve(curves: ClassCurves): Float64Array | undefined {
  return curves.at('all', mostDetections, iouThresholds.indexOf(0.5))?.precision
}
