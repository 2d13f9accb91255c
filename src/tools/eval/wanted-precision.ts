import type { Ranking } from './precision-recall.js'

/** A score from which on detections of a class are right often enough, at IoU 0.5. */
export type WantedPrecision = Readonly<{
  /** Detections with this score and better ones are kept; undefined where no score does it. */
  score: number | undefined
  /** Share of the kept ones that is right; without a score, the best there is. */
  precision: number
  /** Share of the truths that is found. */
  recall: number
}>

/**
 * The lowest score whose detections, with all better ones, are right in at least that share: with it most is found. Detections of one
 * score are kept or left together.
 *
 * @param wanted - 0..1.
 * @returns `undefined` where nothing is to be found, so that nothing can be said.
 */
export function scoreForPrecision(
  { scores, verdicts, positives }: Ranking,
  wanted: number,
): WantedPrecision | undefined {
  if (positives === 0) return undefined
  const verdict = verdicts[0]!
  let right = 0
  let wrong = 0
  let found: WantedPrecision | undefined
  let best: WantedPrecision = { score: undefined, precision: 0, recall: 0 }
  for (let place = 0; place < verdict.length; place++) {
    if (verdict[place] === 1) right += 1
    else if (verdict[place] === 0) wrong += 1
    const isLastOfScore = scores[place + 1] !== scores[place]
    if (!isLastOfScore || right + wrong === 0) continue
    const precision = right / (right + wrong)
    const recall = right / positives
    if (precision >= wanted && right > 0) found = { score: scores[place]!, precision, recall }
    if (precision > best.precision) best = { score: undefined, precision, recall }
  }
  return found ?? best
}

/** How often detections of at least that score are right, and how much they find, at IoU 0.5. Undefined: of nothing. */
export type AtScore = Readonly<{ precision: number | undefined; recall: number | undefined }>

export function atScore({ scores, verdicts, positives }: Ranking, score: number): AtScore {
  const verdict = verdicts[0]!
  let right = 0
  let wrong = 0
  for (let place = 0; place < verdict.length && scores[place]! >= score; place++) {
    if (verdict[place] === 1) right += 1
    else if (verdict[place] === 0) wrong += 1
  }
  return {
    precision: right + wrong === 0 ? undefined : right / (right + wrong),
    recall: positives === 0 ? undefined : right / positives,
  }
}
