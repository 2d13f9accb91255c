import type { CocoSummary } from './coco-scores.js'
import type { Evaluation } from './evaluation.js'

type Cell = string | number | undefined

/** Columns of the twelve numbers, by the names that people know them under. */
export const summaryColumns: readonly (readonly [name: string, key: keyof CocoSummary])[] = [
  ['mAP50-95', 'map'],
  ['AP50', 'ap50'],
  ['AP75', 'ap75'],
  ['mAP_small', 'mapSmall'],
  ['mAP_medium', 'mapMedium'],
  ['mAP_large', 'mapLarge'],
  ['AR1', 'ar1'],
  ['AR10', 'ar10'],
  ['AR100', 'ar100'],
  ['AR_small', 'arSmall'],
  ['AR_medium', 'arMedium'],
  ['AR_large', 'arLarge'],
]

/** A row for each class of each model, after one for all classes. What nothing can be said of is empty. */
export function evaluationCsv({ models }: Evaluation): string {
  const head = [
    'model',
    'class',
    'truths',
    ...summaryColumns.map(([name]) => name),
    'precision',
    'recall',
    'score_for_precision',
    'decode_ms',
    'infer_ms',
    'pictures_per_second',
  ]
  const rows = models.flatMap(({ model, summary, classes, speed }): Cell[][] => [
    [
      model.name,
      'all',
      classes.reduce((sum, { truths }) => sum + truths, 0),
      ...summaryColumns.map(([, key]) => summary[key]),
      undefined,
      undefined,
      undefined,
      speed.decode.medianMs,
      speed.infer.medianMs,
      speed.picturesPerSecond,
    ],
    ...classes.map((each): Cell[] => [
      model.name,
      each.label,
      each.truths,
      ...summaryColumns.map(([, key]) => each.summary[key]),
      each.shown.precision,
      each.shown.recall,
      each.wanted?.score,
      undefined,
      undefined,
      undefined,
    ]),
  ])
  return [head, ...rows].map((row) => `${row.map(cellText).join(',')}\n`).join('')
}

/** As RFC 4180 has it. */
function cellText(cell: Cell): string {
  const text = cell === undefined ? '' : String(cell)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
