import { describe, expect, it } from 'vitest'
import { Candidates } from '../../src/ensemble/heads/candidates.js'
import { bestOf, classAwareNms } from '../../src/ensemble/nms.js'
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

describe('classAwareNms', () => {
  it.each(golden.cases.map((trace, index) => ({ ...trace, index })))(
    `keeps what ${golden.madeBy} keeps (case $index, IoU $iouThreshold)`,
    ({ boxes, scores, classes, iouThreshold, kept }) => {
      expect(classAwareNms(candidatesOf(boxes, scores, classes), iouThreshold, 10_000)).toEqual(kept)
    },
  )

  it('keeps overlapping boxes of different classes', () => {
    const same = [0, 0, 10, 10]
    expect(classAwareNms(candidatesOf([same, same, same], [0.5, 0.9, 0.7], [0, 1, 0]), 0.5, 10)).toEqual([
      1, 2,
    ])
  })

  it('stops at the limit, with the best', () => {
    const far = [0, 100, 200, 300].map((x) => [x, 0, x + 10, 10])
    expect(classAwareNms(candidatesOf(far, [0.5, 0.9, 0.7, 0.8], [0, 0, 0, 0]), 0.5, 2)).toEqual([1, 3])
    expect(bestOf(candidatesOf(far, [0.5, 0.9, 0.7, 0.8], [0, 0, 0, 0]), 3)).toEqual([1, 3, 2])
  })

  it('takes empty boxes without dividing by zero', () => {
    const point = [5, 5, 5, 5]
    expect(classAwareNms(candidatesOf([point, point], [0.9, 0.8], [0, 0]), 0.5, 10)).toEqual([0, 1])
  })
})
