import { headKinds } from '../detector/heads/head.js'
import type { EvaluationSettings } from '../tools/eval/evaluation.js'
import type { SetChoice } from '../tools/eval/read-set.js'
import type { ClassWish } from '../tools/eval/scored-classes.js'
import type { Split } from '../tools/eval/yolo-set.js'
import { UsageError } from './failure.js'
import type { ModelPlace } from './model-source.js'
import { listOf, numberBetween, wholeNumber } from './numbers.js'
import { checkScorerFlags, type ScorerFlags } from './scorer-flags.js'

/** Flags of `gantry eval`, as they come. */
export type EvalFlags = ModelPlace &
  ScorerFlags &
  Readonly<{
    data: string
    split: Split
    images?: string
    limit?: string
    classes?: string
    map?: readonly string[]
    score: string
    iou?: string
    maxDetections?: string
    at: string
    precision?: string
    bootstrap: string
    seed: string
    parallel?: string
    report?: string
    csv?: string
    save?: string
  }>

export type EvalRequest = Readonly<{
  set: SetChoice
  wish: ClassWish
  settings: EvaluationSettings
  atOnce?: number
}>

/** @throws UsageError */
export function evalRequest(flags: EvalFlags): EvalRequest {
  const { data, split, images, limit, classes, map, iou, maxDetections, precision, parallel } = flags
  if (flags.head !== undefined && !(headKinds as readonly string[]).includes(flags.head))
    throw new UsageError(`--head is "${flags.head}"`, `Use one of ${headKinds.join(', ')}.`)
  checkScorerFlags(flags)
  return {
    set: {
      data,
      split,
      ...(images !== undefined && { images }),
      ...(limit !== undefined && { limit: wholeNumber(limit, '--limit', 1, 1e9) }),
    },
    wish: classWish({ classes, map }),
    settings: {
      scoreThreshold: numberBetween(flags.score, '--score', 0, 1),
      ...(iou !== undefined && { iouThreshold: numberBetween(iou, '--iou', 0, 1) }),
      ...(maxDetections !== undefined && {
        maxDetections: wholeNumber(maxDetections, '--max-detections', 1, 10_000),
      }),
      shownScore: numberBetween(flags.at, '--at', 0, 1),
      ...(precision !== undefined && { wantedPrecision: numberBetween(precision, '--precision', 0, 1) }),
      bootstrapDraws: wholeNumber(flags.bootstrap, '--bootstrap', 0, 100_000),
      seed: wholeNumber(flags.seed, '--seed', 0, 2 ** 32 - 1),
    },
    ...(parallel !== undefined && { atOnce: wholeNumber(parallel, '--parallel', 1, 4_096) }),
  }
}

type ClassFlags = Readonly<{ classes?: string | undefined; map?: readonly string[] | undefined }>

/** Which classes are scored, and by which labels. @throws UsageError */
export function classWish({ classes, map = [] }: ClassFlags): ClassWish {
  return {
    ...(classes !== undefined && { only: listOf(classes, '--classes') }),
    map: new Map(map.map(pairOf)),
  }
}

function pairOf(text: string): [string, string] {
  const at = text.lastIndexOf('=')
  const [name, label] = [text.slice(0, at).trim(), text.slice(at + 1).trim()]
  if (at > 0 && name !== '' && label !== '') return [name, label]
  throw new UsageError(
    `--map ${text}: not two names with "=" between`,
    'Write --map "CLASS OF THE SET=LABEL OF THE MODEL".',
  )
}
