import type { Evaluation, ModelEvaluation } from '../tools/eval/evaluation.js'
import { isCompared, signed } from '../tools/eval/evaluation-page.js'
import { table } from './table.js'
import { styled } from './terminal.js'

/** `gantry eval` for people: what each model is worth, the comparison, the classes. */
export function evaluationTables(evaluation: Evaluation, color: boolean): string {
  const { models } = evaluation
  return [
    summaryTable(models, color),
    ...(isCompared(models) ? [comparison(models)] : []),
    classTable(evaluation, color),
  ].join('\n\n')
}

const share = (value: number | undefined) => (value === undefined ? '-' : value.toFixed(3))
const bold = (words: readonly string[], color: boolean) => words.map((word) => styled(word, 'bold', color))

function summaryTable(models: readonly ModelEvaluation[], color: boolean): string {
  const head = [
    'MODEL',
    'PICTURES',
    'mAP50-95',
    '95 %',
    'AP50',
    'AP75',
    'SMALL',
    'MEDIUM',
    'LARGE',
    'AR100',
    'PER S',
    'DECODE MS',
    'INFER MS',
  ]
  const rows = models.map(({ model, pictures, summary, mapInterval, speed }) => [
    model.name,
    String(pictures),
    share(summary.map),
    mapInterval === undefined ? '-' : `${share(mapInterval.low)}-${share(mapInterval.high)}`,
    share(summary.ap50),
    share(summary.ap75),
    share(summary.mapSmall),
    share(summary.mapMedium),
    share(summary.mapLarge),
    share(summary.ar100),
    speed.picturesPerSecond.toFixed(1),
    speed.decode.medianMs.toFixed(1),
    speed.infer.medianMs.toFixed(1),
  ])
  return table(bold(head, color), rows)
}

function comparison(models: readonly ModelEvaluation[]): string {
  const [first, ...others] = models
  return others
    .map(({ model, difference }) => {
      if (difference === undefined) return `${model.name}: not over the same pictures as ${first!.model.name}`
      const { map, interval, better, pictures } = difference
      return `${model.name}: mAP ${signed(map)} against ${first!.model.name}, 95 % ${signed(interval.low)} to ${signed(interval.high)}, better in ${(better * 100).toFixed(0)} % of the draws (${pictures} pictures)`
    })
    .join('\n')
}

function classTable({ models, settings }: Evaluation, color: boolean): string {
  const { shownScore, wantedPrecision } = settings
  const head = ['CLASS', 'THERE', 'mAP50-95', 'AP50', 'AP75', `PRECISION FROM ${shownScore}`, 'RECALL']
  const wantedHead = wantedPrecision === undefined ? [] : [`SCORE FOR ${wantedPrecision}`, 'ITS RECALL']
  const rows = models.flatMap(({ model, classes }) =>
    classes.map(({ label, truths, summary, shown, wanted }) => [
      ...(models.length > 1 ? [model.name] : []),
      label,
      String(truths),
      share(summary.map),
      share(summary.ap50),
      share(summary.ap75),
      share(shown.precision),
      share(shown.recall),
      ...(wantedPrecision === undefined
        ? []
        : [wantedText(wanted), share(wanted?.score === undefined ? undefined : wanted.recall)]),
    ]),
  )
  return table(bold([...(models.length > 1 ? ['MODEL'] : []), ...head, ...wantedHead], color), rows)
}

/** The best there is, where no score is good enough. */
function wantedText(wanted: ModelEvaluation['classes'][number]['wanted']): string {
  if (wanted === undefined) return '-'
  return wanted.score === undefined ? `none (at best ${share(wanted.precision)})` : share(wanted.score)
}
