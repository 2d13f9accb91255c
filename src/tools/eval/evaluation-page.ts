import { escapeHtml, type HtmlCell, htmlFacts, htmlTable } from '../report/html.js'
import { lineChart } from '../report/line-chart.js'
import { reportPage, type ReportSection } from '../report/report-page.js'
import { recallThresholds } from './coco-match.js'
import type { Evaluation, ModelEvaluation, ScoredRun } from './evaluation.js'
import { summaryColumns } from './evaluation-csv.js'
import { exampleFigure } from './example-figure.js'
import { type Example, worstExamples } from './examples.js'
import { shownCurve } from './model-scores.js'

/** Pictures of each kind that a report shows of a model, models of which it shows any, and characters of all of them. */
const mostExamples = 12
const mostModelsWithExamples = 3
const mostCharacters = 6_000_000
/** Lines in one chart that can still be told apart. */
const mostLines = 12

/** The report as one HTML page that needs nothing else. @param runs - those of the evaluation, in its order. */
export async function evaluationPage(evaluation: Evaluation, runs: readonly ScoredRun[]): Promise<string> {
  const { set, labels, models, notes } = evaluation
  const sections: ReportSection[] = [
    { title: 'Accuracy', text: accuracyText(evaluation), html: accuracyTable(models) },
    ...(isCompared(models) ? [comparison(models)] : []),
    { title: 'Classes', html: classTable(evaluation) },
    {
      title: 'Precision and recall',
      text: 'At IoU 0.5: of what is there, how much is found, and how much of what is found is right, as the lowest score that counts is lowered.',
      html: curves(runs, labels),
    },
    ...models.map((model) => confusion(model, labels, evaluation.settings.shownScore)),
    { title: 'Speed', html: speedTable(models) },
  ]
  const { shownScore } = evaluation.settings
  const room = { characters: mostCharacters }
  for (const { run, scores } of runs.slice(0, mostModelsWithExamples)) {
    const { alarms, misses } = worstExamples(run, scores, labels, { shownScore, most: mostExamples })
    const of = models.length > 1 ? ` of ${run.info.name}` : ''
    sections.push(
      await examples(
        `False alarms${of}`,
        'Red: found with the highest scores, and not there. Blue: what is there. Green: right.',
        alarms,
        room,
      ),
      await examples(
        `Misses${of}`,
        'Orange: the largest things that were not found. Green: right.',
        misses,
        room,
      ),
    )
  }
  sections.push({ title: 'What was done', html: facts(evaluation) + noteList(notes) })
  return reportPage({
    title: `${models.map(({ model }) => model.name).join(', ')} on ${set.name}`,
    subtitle: subtitle(evaluation),
    sections,
  })
}

function subtitle({ set, complete, models }: Evaluation): string {
  const counted = models.map(({ pictures }) => pictures)
  const scored = complete
    ? `${set.pictures} pictures`
    : `broken off: ${counted.join(', ')} of ${set.pictures} pictures`
  return `${scored}, labels in the form of ${set.format === 'coco' ? 'COCO' : 'YOLO'}`
}

function accuracyText({ settings }: Evaluation): string {
  return `COCO's numbers, as pycocotools has them: mean average precision over IoU 0.5 to 0.95, the best 100 detections of a class and picture, scores from ${settings.scoreThreshold} on.`
}

const share = (value: number | undefined): HtmlCell => (value === undefined ? '' : { html: value.toFixed(3) })

function accuracyTable(models: readonly ModelEvaluation[]): string {
  return htmlTable(
    ['model', ...summaryColumns.map(([name]) => name), '95 % of mAP'],
    models.map(({ model, summary, mapInterval }) => [
      model.name,
      ...summaryColumns.map(([, key]) => share(summary[key])),
      mapInterval === undefined ? '' : `${mapInterval.low.toFixed(3)} to ${mapInterval.high.toFixed(3)}`,
    ]),
  )
}

function comparison(models: readonly ModelEvaluation[]): ReportSection {
  const rows = models.slice(1).map(({ model, difference }): HtmlCell[] => {
    if (difference === undefined) return [model.name, 'not over the same pictures', '', '']
    const { map, interval, better } = difference
    return [
      model.name,
      signed(map),
      `${signed(interval.low)} to ${signed(interval.high)}`,
      `${(better * 100).toFixed(0)} %`,
    ]
  })
  return {
    title: `Against ${models[0]!.model.name}`,
    text: 'Differences of mAP over the same pictures, drawn anew with repetition. Where the interval holds 0, the difference may be chance.',
    html: htmlTable(['model', 'mAP', '95 %', 'better in'], rows),
  }
}

/** Whether any model was held against the first: not without draws, nor where the others scored other pictures. */
export function isCompared(models: readonly ModelEvaluation[]): boolean {
  return models.some(({ difference }) => difference !== undefined)
}

/** With its sign, as differences are told. */
export function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(3)}`
}

function classTable({ models, settings }: Evaluation): string {
  const withWanted = settings.wantedPrecision !== undefined
  const head = [
    'model',
    'class',
    'there',
    'mAP50-95',
    'AP50',
    'AP75',
    `precision from ${settings.shownScore}`,
    'recall',
  ]
  const rows = models.flatMap(({ model, classes }) =>
    classes.map(({ label, truths, summary, shown, wanted }): HtmlCell[] => [
      model.name,
      label,
      truths,
      share(summary.map),
      share(summary.ap50),
      share(summary.ap75),
      share(shown.precision),
      share(shown.recall),
      ...(withWanted ? [share(wanted?.score), share(wanted?.precision), share(wanted?.recall)] : []),
    ]),
  )
  const wantedHead = withWanted
    ? [`score for ${settings.wantedPrecision}`, 'its precision', 'its recall']
    : []
  return htmlTable([...head, ...wantedHead], rows)
}

function curves(runs: readonly ScoredRun[], labels: readonly string[]): string {
  const lines = runs.flatMap(({ run, scores }) =>
    scores.curves.flatMap((each, place) => {
      const precision = shownCurve(each)
      if (precision === undefined) return []
      const name = runs.length > 1 ? `${labels[place]}, ${run.info.name}` : labels[place]!
      const points = [...precision].map((y, index) => ({ x: recallThresholds[index]!, y }))
      return [{ name, points }]
    }),
  )
  const axes = { xLabel: 'recall', yLabel: 'precision', xMin: 0, xMax: 1, yMin: 0, yMax: 1 }
  const charts = Array.from({ length: Math.ceil(lines.length / mostLines) }, (_, chart) =>
    lineChart(lines.slice(chart * mostLines, (chart + 1) * mostLines), axes),
  )
  return charts.join('\n')
}

function confusion(
  { model, confusion: counts }: ModelEvaluation,
  labels: readonly string[],
  score: number,
): ReportSection {
  const names = [...labels, 'nothing']
  return {
    title: `What ${model.name} took for what`,
    text: `Boxes with a score from ${score} on that overlap by IoU 0.5. Rows are what is there, columns what was found: "nothing" as a row is a false alarm, as a column a miss.`,
    html: htmlTable(
      ['', ...names],
      counts.map((row, index) => [names[index]!, ...row]),
    ),
  }
}

function speedTable(models: readonly ModelEvaluation[]): string {
  return htmlTable(
    ['model', 'where', 'input', 'pictures/s', 'decode ms', 'p95', 'infer ms', 'p95', 'at once'],
    models.map(({ model, speed }) => [
      model.name,
      model.where,
      model.input,
      speed.picturesPerSecond,
      speed.decode.medianMs,
      speed.decode.p95Ms,
      speed.infer.medianMs,
      speed.infer.p95Ms,
      speed.atOnce,
    ]),
  )
}

/** @param room - what is left of it becomes less. */
async function examples(
  title: string,
  text: string,
  list: readonly Example[],
  room: { characters: number },
): Promise<ReportSection> {
  const figures: string[] = []
  for (const each of list) {
    const figure = await exampleFigure(each)
    room.characters -= figure.length
    if (room.characters < 0) break
    figures.push(figure)
  }
  const grid = 'display:grid;grid-template-columns:repeat(auto-fill,minmax(18rem,1fr));gap:1rem'
  return {
    title,
    text,
    html: figures.length === 0 ? '<p>None.</p>' : `<div style="${grid}">${figures.join('\n')}</div>`,
  }
}

function facts({ set, settings, labels }: Evaluation): string {
  const { scoreThreshold, iouThreshold, maxDetections, shownScore, bootstrapDraws, seed } = settings
  return htmlFacts([
    ['data set', set.name],
    ['classes scored', labels.join(', ')],
    ['lowest score asked for', String(scoreThreshold)],
    ['IoU of NMS', iouThreshold === undefined ? 'as the model is served' : String(iouThreshold)],
    [
      'most detections of a picture',
      maxDetections === undefined ? 'as the model is served' : String(maxDetections),
    ],
    ['score of precision, recall and confusion', String(shownScore)],
    ['draws', `${bootstrapDraws}, seed ${seed}`],
  ])
}

function noteList(notes: readonly string[]): string {
  return notes.length === 0 ? '' : `<ul>${notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('')}</ul>`
}
