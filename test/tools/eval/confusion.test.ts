import { expect, it } from 'vitest'
import { confusionOf } from '../../../src/tools/eval/confusion.js'
import type { CocoBox } from '../../../src/tools/eval/coco-box.js'

const truth = (id: number, box: CocoBox, crowd = false) => ({
  class: id,
  box,
  areaPx: box[2] * box[3],
  crowd,
})
const found = (id: number, box: CocoBox, score = 0.9) => ({ class: id, box, score })

it('pairs by overlap alone, the closest first, and counts what is left over', () => {
  const counts = confusionOf(
    [
      {
        truths: [truth(0, [0, 0, 10, 10]), truth(1, [100, 0, 10, 10]), truth(1, [200, 0, 10, 10])],
        found: [
          found(0, [0, 0, 10, 9]),
          found(1, [0, 0, 10, 10], 0.4),
          found(0, [100, 0, 10, 10]),
          found(0, [300, 0, 10, 10]),
          found(1, [200, 0, 10, 10], 0.2),
        ],
      },
    ],
    2,
    0.3,
  )
  expect(counts).toEqual([
    [0, 1, 0],
    [1, 0, 1],
    [2, 0, 0],
  ])
})

it('does not count what is in a crowd of its class', () => {
  const crowd = truth(0, [0, 0, 100, 100], true)
  const inside: CocoBox = [10, 10, 10, 10]
  expect(confusionOf([{ truths: [crowd], found: [found(0, inside), found(1, inside)] }], 2, 0)).toEqual([
    [0, 0, 0],
    [0, 0, 0],
    [0, 1, 0],
  ])
})
