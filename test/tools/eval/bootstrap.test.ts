import { describe, expect, it } from 'vitest'
import { drawsOf, intervalOf, mapOfDraw, resampled } from '../../../src/tools/eval/bootstrap.js'
import { cocoCurves, cocoSummary } from '../../../src/tools/eval/coco-scores.js'
import { asClassPictures, madeSet, setKinds } from '../../support/coco-sets.js'

const curvesOf = (kind: (typeof setKinds)[number], seed: number) =>
  cocoCurves(asClassPictures(madeSet(kind, seed)))

function resampledOf(curves: ReturnType<typeof curvesOf>) {
  return curves.map(({ ranking, matches }) =>
    resampled(
      ranking,
      Float64Array.from(matches, (match) => match?.positives ?? 0),
    ),
  )
}

describe('a draw', () => {
  it.each(setKinds)('with every picture once has the mAP of the set: %s', (kind) => {
    for (const seed of [1, 2, 3]) {
      const curves = curvesOf(kind, seed)
      const pictures = curves[0]!.matches.length
      const drawn = mapOfDraw(resampledOf(curves), new Uint16Array(pictures).fill(1))
      expect(drawn).toBeCloseTo(cocoSummary(curves).map!, 12)
    }
  })

  it('has the mAP of a set that has each picture so often', () => {
    const classes = asClassPictures(madeSet('crowds', 5))
    const pictures = classes[0]!.length
    for (const times of drawsOf(pictures, 20, 7)) {
      const often = classes.map((list) =>
        list.flatMap((each, index) => new Array<typeof each>(times[index]!).fill(each)),
      )
      const whole = cocoSummary(cocoCurves(often)).map
      expect(mapOfDraw(resampledOf(cocoCurves(classes)), times)).toBeCloseTo(whole!, 10)
    }
  })
})

it('draws as many pictures as there are, by the seed', () => {
  const draws = drawsOf(50, 200, 3)
  for (const times of draws) expect(times.reduce((sum, each) => sum + each, 0)).toBe(50)
  expect(drawsOf(50, 200, 3)).toEqual(draws)
  expect(drawsOf(50, 200, 4)).not.toEqual(draws)
})

it('takes the middle 95 of 100', () => {
  expect(intervalOf(Array.from({ length: 1001 }, (_, index) => 1000 - index))).toEqual({ low: 25, high: 975 })
  expect(intervalOf([0.5])).toEqual({ low: 0.5, high: 0.5 })
})
