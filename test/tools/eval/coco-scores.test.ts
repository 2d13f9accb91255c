import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { areaRanges, iouThresholds, recallThresholds } from '../../../src/tools/eval/coco-match.js'
import {
  cocoCurves,
  type CocoSummary,
  cocoSummary,
  detectionLimitsCounted,
} from '../../../src/tools/eval/coco-scores.js'
import {
  asClassPictures,
  asCoco,
  cocoPeer,
  type MadeSet,
  madeSet,
  type PeerScores,
  setKinds,
} from '../../support/coco-sets.js'

const peer = await cocoPeer()

/** In COCO's order; -1 where nothing can be said. */
function stats(summary: CocoSummary): number[] {
  const { map, ap50, ap75, mapSmall, mapMedium, mapLarge, ar1, ar10, ar100, arSmall, arMedium, arLarge } =
    summary
  const all = [map, ap50, ap75, mapSmall, mapMedium, mapLarge, ar1, ar10, ar100, arSmall, arMedium, arLarge]
  return all.map((value) => value ?? -1)
}

/** Every number that pycocotools has of a set, in its order. */
function numbersOf(set: MadeSet): PeerScores {
  const curves = cocoCurves(asClassPictures(set))
  const each = <T>(read: (curve: ReturnType<(typeof curves)[number]['at']>) => T) =>
    iouThresholds.map((_, threshold) =>
      curves.map((curve) =>
        areaRanges.map(({ name }) =>
          detectionLimitsCounted.map((most) => read(curve.at(name, most, threshold))),
        ),
      ),
    )
  const along = (read: 'precision' | 'scores') =>
    iouThresholds.map((_, threshold) =>
      recallThresholds.map((__, recall) =>
        curves.map((curve) =>
          areaRanges.map(({ name }) =>
            detectionLimitsCounted.map((most) => curve.at(name, most, threshold)?.[read][recall] ?? -1),
          ),
        ),
      ),
    )
  return {
    stats: stats(cocoSummary(curves)),
    precision: along('precision'),
    scores: along('scores'),
    recall: each((curve) => curve?.recall ?? -1),
  }
}

/** Most that two of their numbers are apart; infinite where they are not as many. */
function furthest(a: unknown, b: unknown): number {
  const [left, right] = [a, b].map((each) => [each].flat(Infinity) as number[])
  if (left!.length !== right!.length) return Infinity
  return left!.reduce((most, value, index) => Math.max(most, Math.abs(value - right![index]!)), 0)
}

describe.skipIf(peer === undefined)('against pycocotools', () => {
  // Other sets each day: a fault that these do not show may show on those.
  const day = Math.floor(Date.now() / 86_400_000)
  const seeds = [1, 2, 3, day * 10, day * 10 + 1]
  let theirs: readonly PeerScores[] = []
  beforeAll(async () => {
    theirs = await peer!(setKinds.flatMap((kind) => seeds.map((seed) => asCoco(madeSet(kind, seed)))))
  }, 60_000)

  it.each(setKinds.flatMap((kind) => seeds.map((seed) => ({ kind, seed }))))(
    'gives every number of it: $kind, seed $seed',
    ({ kind, seed }) => {
      const { stats: own, ...ours } = numbersOf(madeSet(kind, seed))
      const { stats: other, ...their } = theirs[setKinds.indexOf(kind) * seeds.length + seeds.indexOf(seed)]!
      expect(furthest(own, other)).toBeLessThan(1e-12)
      for (const key of ['precision', 'scores', 'recall'] as const)
        expect(furthest(ours[key], their[key]), key).toBeLessThan(1e-12)
    },
  )

  it('looks at sets of which not every answer would be right', () => {
    for (const each of theirs) expect(each.stats[1]! > 0.01 && each.stats[1]! < 0.95).toBe(true)
  })
})

it('gives the numbers that pycocotools 2.0.11 gave', () => {
  const golden = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../golden/coco-scores.json'), 'utf8'),
  ) as Readonly<Record<string, readonly number[]>>
  expect(Object.keys(golden)).toEqual(setKinds)
  for (const kind of setKinds) {
    const own = stats(cocoSummary(cocoCurves(asClassPictures(madeSet(kind, 1)))))
    expect(furthest(own, golden[kind]), kind).toBeLessThan(1e-9)
  }
})

it('says nothing of classes that nothing is labelled of, and 0 of those of which nothing is found', () => {
  const truth = { box: [0, 0, 50, 50] as const, areaPx: 2_500, crowd: false }
  const found = { box: [0, 0, 50, 50] as const, score: 0.5 }
  const [never, missed] = cocoCurves([[{ truths: [], found: [found] }], [{ truths: [truth], found: [] }]])
  expect(cocoSummary([never!]).map).toBeUndefined()
  expect(cocoSummary([missed!])).toMatchObject({ map: 0, ar100: 0, mapMedium: 0, mapSmall: undefined })
  expect(cocoSummary([never!, missed!]).map).toBe(0)
})
