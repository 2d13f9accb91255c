import { expect, it } from 'vitest'
import type { Ranking } from '../../../src/tools/eval/precision-recall.js'
import { atScore, scoreForPrecision } from '../../../src/tools/eval/wanted-precision.js'

/** @param places - score and verdict: 1 right, 0 wrong, 2 neither. */
function ranking(
  positives: number,
  ...places: readonly (readonly [score: number, verdict: number])[]
): Ranking {
  return {
    scores: Float64Array.from(places, ([score]) => score),
    verdicts: [Uint8Array.from(places, ([, verdict]) => verdict)],
    pictures: new Int32Array(places.length),
    positives,
  }
}

it('is the lowest score that does it, even below ones that do not', () => {
  const ranked = ranking(4, [0.9, 1], [0.8, 0], [0.7, 1], [0.6, 1], [0.5, 0])
  expect(scoreForPrecision(ranked, 0.75)).toEqual({ score: 0.6, precision: 0.75, recall: 0.75 })
  expect(scoreForPrecision(ranked, 0.6)).toEqual({ score: 0.5, precision: 0.6, recall: 0.75 })
  expect(scoreForPrecision(ranked, 1)).toEqual({ score: 0.9, precision: 1, recall: 0.25 })
})

it('keeps or leaves detections of one score together, and does not count what is neither', () => {
  const ranked = ranking(2, [0.9, 1], [0.9, 0], [0.5, 2], [0.4, 1])
  expect(scoreForPrecision(ranked, 0.9)).toEqual({ score: undefined, precision: 2 / 3, recall: 1 })
  expect(scoreForPrecision(ranked, 0.6)).toEqual({ score: 0.4, precision: 2 / 3, recall: 1 })
})

it('says the best there is, and nothing of what is not there', () => {
  expect(scoreForPrecision(ranking(2, [0.9, 0], [0.8, 1]), 0.9)).toEqual({
    score: undefined,
    precision: 0.5,
    recall: 0.5,
  })
  expect(scoreForPrecision(ranking(2), 0.9)).toEqual({ score: undefined, precision: 0, recall: 0 })
  expect(scoreForPrecision(ranking(0, [0.9, 0]), 0.9)).toBeUndefined()
})

it('tells precision and recall at a score', () => {
  const ranked = ranking(4, [0.9, 1], [0.8, 0], [0.7, 2], [0.6, 1])
  expect(atScore(ranked, 0.65)).toEqual({ precision: 0.5, recall: 0.25 })
  expect(atScore(ranked, 0.95)).toEqual({ precision: undefined, recall: 0 })
  expect(atScore(ranking(0), 0.5)).toEqual({ precision: undefined, recall: undefined })
})
