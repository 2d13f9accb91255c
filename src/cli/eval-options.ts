import { headKinds } from '../detector/heads/head.js'
import type { EvaluationSettings } from '../tools/eval/evaluation.js'
import type { SetChoice } from '../tools/eval/read-set.js'
import type { ClassWish } from '../tools/eval/scored-classes.js'
import type { Split } from '../tools/eval/yolo-set.js'
import { UsageError } from './failure.js'
import type { ModelPlace } from './model-source.js'
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
  const { data, split, images, limit, classes, map = [], iou, maxDetections, precision, parallel } = flags
  if (flags.head !== undefined && !(headKinds as readonly string[]).includes(flags.head))
    throw new UsageError(`--head is "${flags.head}"`, `Use one of ${headKinds.join(', ')}.`)
  checkScorerFlags(flags)
  return {
    set: {
      data,
      split,
      ...(images !== undefined && { images }),
      ...(limit !== undefined && { limit: whole(limit, '--limit', 1, 1e9) }),
    },
    wish: {
      ...(classes !== undefined && { only: namesIn(classes) }),
      map: new Map(map.map(pairOf)),
    },
    settings: {
      scoreThreshold: share(flags.score, '--score'),
      ...(iou !== undefined && { iouThreshold: share(iou, '--iou') }),
      ...(maxDetections !== undefined && {
        maxDetections: whole(maxDetections, '--max-detections', 1, 10_000),
      }),
      shownScore: share(flags.at, '--at'),
      ...(precision !== undefined && { wantedPrecision: share(precision, '--precision') }),
      bootstrapDraws: whole(flags.bootstrap, '--bootstrap', 0, 100_000),
      seed: whole(flags.seed, '--seed', 0, 2 ** 32 - 1),
    },
    ...(parallel !== undefined && { atOnce: whole(parallel, '--parallel', 1, 4_096) }),
  }
}

function namesIn(list: string): readonly string[] {
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length > 0) return names
  throw new UsageError('--classes names none', 'Write --classes helmet,head.')
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

function whole(text: string, flag: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new UsageError(`${flag} is "${text}"`, `Use a whole number from ${min} to ${max}.`)
}

function share(text: string, flag: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 1) return value
  throw new UsageError(`${flag} is "${text}"`, 'Use a number from 0 to 1.')
}
