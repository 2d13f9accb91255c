import { iouThresholds, type PictureMatch, recallThresholds } from './coco-match.js'

/** Precision at each of the 101 recalls, the score it is reached at, and the highest recall. */
export type Curve = Readonly<{ precision: Float64Array; scores: Float64Array; recall: number }>

/** Detections of one class over all pictures, best first. */
export type Ranking = Readonly<{
  scores: Float64Array
  /** By IoU threshold and place: 1 right, 0 wrong, 2 neither. */
  verdicts: readonly Uint8Array[]
  /** Index of the picture, by place. */
  pictures: Int32Array
  positives: number
}>

/** numpy's `spacing(1)`: keeps 0 of 0 from being no number. */
const tiny = Number.EPSILON

/** Detections of one class over all pictures, best first: where each is. It is the same for every range of areas. */
export type Order = Readonly<{
  scores: Float64Array
  pictures: Int32Array
  /** Place among those of its picture, best first. */
  indices: Int32Array
}>

/**
 * The detections of a class in one order, equal scores in that of the pictures.
 *
 * @param matches - by picture; `undefined` where it has neither truth nor detection of the class.
 */
export function orderOf(matches: readonly (PictureMatch | undefined)[]): Order {
  const places: { score: number; picture: number; index: number }[] = []
  matches.forEach((match, picture) =>
    match?.scores.forEach((score, index) => places.push({ score, picture, index })),
  )
  places.sort((a, b) => b.score - a.score)
  return {
    scores: Float64Array.from(places, ({ score }) => score),
    pictures: Int32Array.from(places, ({ picture }) => picture),
    indices: Int32Array.from(places, ({ index }) => index),
  }
}

/**
 * What became of them.
 *
 * @param matches - those of the order, for one range of areas.
 * @param most - detections of a picture that count.
 */
export function rank(order: Order, matches: readonly (PictureMatch | undefined)[], most: number): Ranking {
  const counting = Int32Array.from(order.indices.keys()).filter((place) => order.indices[place]! < most)
  const pictures = counting.map((place) => order.pictures[place]!)
  const verdicts = iouThresholds.map((_, threshold) => {
    const verdict = new Uint8Array(counting.length)
    counting.forEach((from, place) => {
      const { scores, ignored, matched } = matches[pictures[place]!]!
      const at = threshold * scores.length + order.indices[from]!
      verdict[place] = ignored[at] === 1 ? 2 : matched[at]!
    })
    return verdict
  })
  return {
    scores: Float64Array.from(counting, (place) => order.scores[place]!),
    verdicts,
    pictures,
    positives: matches.reduce((sum, match) => sum + (match?.positives ?? 0), 0),
  }
}

/**
 * The curve of a class at one IoU threshold.
 *
 * @returns `undefined` where there is nothing to be found.
 * @see pycocotools `COCOeval.accumulate`
 */
export function curveOf({ scores, verdicts, positives }: Ranking, threshold: number): Curve | undefined {
  if (positives === 0) return undefined
  const verdict = verdicts[threshold]!
  const precision = new Float64Array(verdict.length)
  const recall = new Float64Array(verdict.length)
  let right = 0
  let wrong = 0
  for (let place = 0; place < verdict.length; place++) {
    if (verdict[place] === 1) right += 1
    else if (verdict[place] === 0) wrong += 1
    recall[place] = right / positives
    precision[place] = right / (wrong + right + tiny)
  }
  makeFalling(precision)
  const sampled = new Float64Array(recallThresholds.length)
  const sampledScores = new Float64Array(recallThresholds.length)
  let place = 0
  recallThresholds.forEach((wanted, index) => {
    while (place < recall.length && recall[place]! < wanted) place += 1
    if (place === recall.length) return
    sampled[index] = precision[place]!
    sampledScores[index] = scores[place]!
  })
  return { precision: sampled, scores: sampledScores, recall: recall.at(-1) ?? 0 }
}

/** The best precision at that recall or beyond. */
function makeFalling(precision: Float64Array): void {
  for (let place = precision.length - 1; place > 0; place--)
    if (precision[place]! > precision[place - 1]!) precision[place - 1] = precision[place]!
}
