import { describe, expect, it } from 'vitest'
import { checkGrids } from '../../../src/detector/heads/check-grids.js'
import { defaultHeadOptions, type HeadPlan } from '../../../src/detector/heads/head.js'

/** Grids of 80x48, 40x24 and 20x12 cells. */
const input = { widthPx: 640, heightPx: 384 }
const cells = 80 * 48 + 40 * 24 + 20 * 12

function plan(kind: HeadPlan['kind'], anchors: readonly number[] = []): HeadPlan {
  return { kind, output: 'out', classes: 80, strides: [], options: { ...defaultHeadOptions, anchors } }
}

describe('outputs of a model that was exported with another size', () => {
  it.each<[string, HeadPlan, readonly number[]]>([
    ['a point for each cell', plan('yolov8'), [1, 84, cells]],
    ['three anchors for each cell', plan('yolov5'), [1, cells * 3, 85]],
    ['an anchor for each cell, as of YOLOv6', plan('yolov5'), [1, cells, 85]],
    ['a grid like the input', plan('grid', [1, 1, 2, 2, 3, 3]), [1, 3, 48, 80, 85]],
    ['as many boxes at any size', plan('end-to-end'), [1, 300, 6]],
  ])('fit with %s', (_, head, shape) => {
    expect(() => checkGrids(head, input, [shape])).not.toThrow()
  })

  it.each<[string, HeadPlan, readonly number[]]>([
    ['the points of 640x640', plan('yolov8'), [1, 84, 8400]],
    ['the anchors of 640x640', plan('yolov5'), [1, 25200, 85]],
    ['the grid of 640x640', plan('grid', [1, 1, 2, 2, 3, 3]), [1, 3, 80, 80, 85]],
  ])('do not fit with %s', (_, head, shape) => {
    expect(() => checkGrids(head, input, [shape])).toThrow(
      `output "out" [${shape.join(', ')}] has not the cells of a picture of 640x384`,
    )
  })
})
