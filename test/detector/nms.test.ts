import { describe, expect, it } from 'vitest'
import { Candidates } from '../../src/detector/heads/candidates.js'
import { suppress, type Suppression } from '../../src/detector/nms.js'
import golden from '../golden/nms.json' with { type: 'json' }

function candidatesOf(
  boxes: readonly (readonly number[])[],
  scores: readonly number[],
  classes: readonly number[],
) {
  const candidates = new Candidates(2)
  boxes.forEach(([x1 = 0, y1 = 0, x2 = 0, y2 = 0], index) =>
    candidates.pushCorners(x1, y1, x2, y2, scores[index] ?? 0, classes[index] ?? 0),
  )
  return candidates
}

const usual: Suppression = { iouThreshold: 0.5, maxKept: 10, withinClasses: true }

describe('suppress', () => {
  it.each(golden.cases.map((trace, index) => ({ ...trace, index })))(
    `keeps what ${golden.madeBy} keeps (case $index, IoU $iouThreshold)`,
    ({ boxes, scores, classes, iouThreshold, kept }) => {
      const candidates = candidatesOf(boxes, scores, classes)
      expect(suppress(candidates, { ...usual, iouThreshold, maxKept: 10_000 })).toEqual(kept)
    },
  )

  const same = [0, 0, 10, 10]

  it('keeps overlapping boxes of different classes', () => {
    expect(suppress(candidatesOf([same, same, same], [0.5, 0.9, 0.7], [0, 1, 0]), usual)).toEqual([1, 2])
  })

  it('keeps the best of classes that exclude each other', () => {
    const candidates = candidatesOf([same, same, same, same], [0.5, 0.9, 0.7, 0.6], [0, 1, 2, 3])
    expect(suppress(candidates, { ...usual, exclusive: [0, 0, 2, 3] })).toEqual([1, 2, 3])
    const apart = candidatesOf([same, [20, 0, 30, 10]], [0.5, 0.9], [0, 1])
    expect(suppress(apart, { ...usual, exclusive: [0, 0] })).toEqual([1, 0])
  })

  it('leaves boxes of one class to a model that has done NMS, also beside classes that exclude each other', () => {
    const candidates = candidatesOf([same, same, same], [0.5, 0.9, 0.7], [0, 1, 1])
    const done = { ...usual, withinClasses: false }
    expect(suppress(candidates, done)).toEqual([1, 2, 0])
    expect(suppress(candidates, { ...done, exclusive: [0, 0] })).toEqual([1, 2])
  })

  it('stops at the limit, with the best', () => {
    const far = [0, 100, 200, 300].map((x) => [x, 0, x + 10, 10])
    const candidates = candidatesOf(far, [0.5, 0.9, 0.7, 0.8], [0, 0, 0, 0])
    expect(suppress(candidates, { ...usual, maxKept: 2 })).toEqual([1, 3])
    expect(suppress(candidates, { ...usual, maxKept: 3, withinClasses: false })).toEqual([1, 3, 2])
  })

  it('takes empty boxes without dividing by zero', () => {
    const point = [5, 5, 5, 5]
    expect(suppress(candidatesOf([point, point], [0.9, 0.8], [0, 0]), usual)).toEqual([0, 1])
  })
})
