import { expect, it } from 'vitest'
import { Candidates } from '../../../src/detector/heads/candidates.js'
import { createHead } from '../../../src/detector/heads/create-head.js'
import {
  defaultHeadOptions,
  type HeadKind,
  type HeadOptions,
  type HeadPlan,
} from '../../../src/detector/heads/head.js'

/** Twice as wide as high: grids of 8x4, 4x2 and 2x1 cells, 42 in all. */
const input = { widthPx: 64, heightPx: 32 }
const strides = [8, 16, 32]
const cells = 42
/** Second row, sixth column of the finest grid: its corner is at (40, 8). */
const cell = 8 + 5

function plan(kind: HeadKind, outputs: number, options: Partial<HeadOptions> = {}): HeadPlan {
  return {
    kind,
    output: '0',
    others: Array.from({ length: outputs - 1 }, (_, index) => String(index + 1)),
    classes: 2,
    columns: 2,
    strides,
    options: { ...defaultHeadOptions, ...options },
  }
}

type Output = Readonly<{ shape: readonly number[]; values: Readonly<Record<number, number>> }>

function boxes(head: HeadPlan, ...outputs: readonly Output[]) {
  const out = new Candidates(1)
  const data = outputs.map(({ shape, values }) => {
    const filled = new Float32Array(shape.reduce((product, size) => product * size, 1))
    for (const [at, value] of Object.entries(values)) filled[Number(at)] = value
    return filled
  })
  const decoder = createHead(
    head,
    input,
    outputs.map(({ shape }) => shape),
  )
  decoder.decode(data, 0, 0.5, out)
  return Array.from({ length: out.count }, (_, index) => [...out.boxes.subarray(index * 4, index * 4 + 4)])
}

const at = (start: number, values: readonly number[], step = 1): Output['values'] =>
  Object.fromEntries(values.map((value, index) => [start + index * step, value]))

it.each<[string, number[][], number[][]]>([
  [
    'yolov8',
    [[40, 8, 56, 16]],
    boxes(plan('yolov8', 1), { shape: [1, 6, cells], values: at(cell, [48, 12, 16, 8, 0, 1], cells) }),
  ],
  [
    'yolov5',
    [[40, 8, 56, 16]],
    boxes(plan('yolov5', 1), { shape: [1, 3 * cells, 7], values: at(cell * 7, [48, 12, 16, 8, 1, 0, 1]) }),
  ],
  [
    'yolox',
    // The offset is in cells, and so are the logarithms of width and height.
    [[40, 8, 48, 16]],
    boxes(plan('yolox', 1), { shape: [1, cells, 7], values: at(cell * 7, [0.5, 0.5, 0, 0, 1, 0, 1]) }),
  ],
  [
    'yolox on the coarsest grid',
    [[32, 0, 64, 32]],
    boxes(plan('yolox', 1), { shape: [1, cells, 7], values: at(41 * 7, [0.5, 0.5, 0, 0, 1, 0, 1]) }),
  ],
  [
    'end-to-end',
    [[40, 8, 56, 16]],
    boxes(plan('end-to-end', 1), { shape: [1, 3, 6], values: at(0, [40, 8, 56, 16, 1, 1]) }),
  ],
  [
    'boxes of RT-DETR, in pixels',
    [[40, 8, 56, 16]],
    boxes(
      plan('boxes', 3),
      { shape: [1, 2, 4], values: at(0, [40, 8, 56, 16]) },
      { shape: [1, 2], values: { 0: 1 } },
      { shape: [1, 2], values: { 0: 1 } },
    ),
  ],
  [
    "boxes of TensorFlow's detection API, 0..1, y first",
    [[32, 8, 48, 16]],
    boxes(
      plan('boxes', 3, { box: 'yxyx', unit: 'relative' }),
      { shape: [1, 2, 4], values: at(0, [0.25, 0.5, 0.5, 0.75]) },
      { shape: [1, 2], values: { 0: 1 } },
      { shape: [1, 2], values: { 0: 1 } },
    ),
  ],
  [
    'detr, centre and size in 0..1',
    [[16, 8, 48, 24]],
    boxes(
      plan('detr', 2, { box: 'cxcywh', unit: 'relative' }),
      { shape: [1, 2, 2], values: { 1: 1 } },
      { shape: [1, 2, 4], values: at(0, [0.5, 0.5, 0.5, 0.5]) },
    ),
  ],
  [
    'ssd with priors',
    [[16, 8, 48, 24]],
    boxes(
      plan('ssd', 3, { unit: 'relative' }),
      { shape: [1, 2, 2], values: { 1: 1 } },
      { shape: [1, 2, 4], values: {} },
      { shape: [1, 2, 4], values: at(0, [0.5, 0.5, 0.5, 0.5]) },
    ),
  ],
  [
    'nanodet',
    // Left and top at the point of the cell, right and bottom one cell from it.
    [[40, 8, 48, 16]],
    boxes(plan('nanodet', 1, { regMax: 7 }), {
      shape: [1, cells, 2 + 32],
      values: {
        [cell * 34 + 1]: 1,
        [cell * 34 + 2]: 50,
        [cell * 34 + 10]: 50,
        [cell * 34 + 19]: 50,
        [cell * 34 + 27]: 50,
      },
    }),
  ],
  [
    'grid',
    // All zeros but the scores: sigmoid 0.5, so the middle of the cell, and as large as the anchor.
    [[39, 6, 49, 18]],
    boxes(
      plan('grid', 2, { activation: 'sigmoid', decoding: 'v5', anchors: [10, 12, 30, 30] }),
      { shape: [1, 1, 4, 8, 7], values: at(cell * 7 + 4, [50, -50, 50]) },
      { shape: [1, 1, 2, 4, 7], values: {} },
    ),
  ],
])('reads a rectangular input: %s', (_, expected, found) => {
  expect(found.map((box) => box.map((side) => Math.round(side * 100) / 100))).toEqual(expected)
})
