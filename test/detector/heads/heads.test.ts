import { describe, expect, it } from 'vitest'
import { Candidates } from '../../../src/detector/heads/candidates.js'
import { YoloV8Head } from '../../../src/detector/heads/yolov8.js'
import { createHead } from '../../../src/detector/heads/create-head.js'
import type { HeadKind, HeadPlan } from '../../../src/detector/heads/head.js'

const input = { widthPx: 64, heightPx: 64 }

function plan(kind: HeadKind, classes: number | undefined, strides: readonly number[] = []): HeadPlan {
  return { kind, output: 'output0', classes, strides }
}

function decode(head: HeadPlan, shape: readonly number[], data: Float32Array, frame = 0, minScore = 0.5) {
  const out = new Candidates(1)
  createHead(head, input, [shape]).decode([data], frame, minScore, out)
  return Array.from({ length: out.count }, (_, index) => ({
    box: [...out.boxes.subarray(index * 4, index * 4 + 4)],
    score: out.scores[index],
    classId: out.classes[index],
  }))
}

/** A tensor `[rows, columns]` of zeros with some rows or columns filled in. */
function rowsOf(
  count: number,
  width: number,
  rows: Readonly<Record<number, readonly number[]>>,
): Float32Array {
  const data = new Float32Array(count * width)
  for (const [row, values] of Object.entries(rows)) data.set(values, Number(row) * width)
  return data
}

function columnsOf(
  count: number,
  height: number,
  columns: Readonly<Record<number, readonly number[]>>,
): Float32Array {
  const data = new Float32Array(count * height)
  for (const [column, values] of Object.entries(columns))
    values.forEach((value, row) => (data[row * count + Number(column)] = value))
  return data
}

describe('yolov8 head', () => {
  const head = plan('yolov8', 3)

  it('takes the best class of each point and turns centre and size into corners', () => {
    const data = columnsOf(84, 7, { 2: [30, 20, 10, 8, 0.1, 0.75, 0.625], 83: [50, 50, 4, 4, 0.5, 0, 0] })
    expect(decode(head, [1, 7, 84], data)).toEqual([
      { box: [25, 16, 35, 24], score: 0.75, classId: 1 },
      { box: [48, 48, 52, 52], score: 0.5, classId: 0 },
    ])
  })

  it('reads the frame of a batch it is asked for, and forgets the one before', () => {
    const first = columnsOf(84, 7, { 2: [30, 20, 10, 8, 0.75, 0, 0] })
    const second = columnsOf(84, 7, { 5: [40, 40, 2, 2, 0, 0, 0.875] })
    const batch = new Float32Array(first.length * 2)
    batch.set(first)
    batch.set(second, first.length)
    const decoder = createHead(head, input, [[2, 7, 84]])
    const out = new Candidates()
    decoder.decode([batch], 0, 0.5, out)
    out.clear()
    decoder.decode([batch], 1, 0.5, out)
    expect(out.count).toBe(1)
    expect([out.scores[0], out.classes[0]]).toEqual([0.875, 2])
  })

  it('looks at every point, whatever their number', () => {
    for (let anchors = 1; anchors <= 9; anchors += 1) {
      const data = new Float32Array(6 * anchors).map((_, at) => (at < 4 * anchors ? 8 : 0.5 + at / 1_000))
      const out = new Candidates()
      new YoloV8Head(2, anchors).decode(data, 0, 0.5, out)
      expect([...out.classes.subarray(0, out.count)]).toEqual(Array.from({ length: anchors }, () => 1))
    }
  })

  it('finds nothing under the threshold, nor in scores that are not numbers', () => {
    const data = columnsOf(84, 7, { 0: [30, 20, 10, 8, 0.49, 0, 0], 1: [30, 20, 10, 8, Number.NaN, 0, 0] })
    expect(decode(head, [1, 7, 84], data)).toEqual([])
  })
})

describe('yolov5 head', () => {
  it('multiplies objectness and class score', () => {
    const data = rowsOf(252, 7, {
      0: [30, 20, 10, 8, 0.875, 0.25, 1],
      1: [30, 20, 10, 8, 0.625, 0.75, 0],
      2: [30, 20, 10, 8, 0.25, 1, 1],
    })
    expect(decode(plan('yolov5', 2), [1, 252, 7], data)).toEqual([
      { box: [25, 16, 35, 24], score: 0.875, classId: 1 },
    ])
  })
})

describe('yolox head', () => {
  const head = plan('yolox', 2, [8, 16, 32])

  it('turns cells of every grid into input pixels', () => {
    const data = rowsOf(84, 7, {
      // stride 8, 8 columns: row 1, column 2
      10: [0.5, 0.25, Math.log(2), 0, 1, 0, 0.75],
      // stride 16, 4 columns: row 0, column 1
      65: [0, 0.5, 0, Math.log(4), 0.75, 1, 0],
      // stride 32, 2 columns: row 1, column 1
      83: [0.5, 0.5, 0, 0, 1, 0.5, 0],
    })
    const found = decode(head, [1, 84, 7], data)
    expect(found).toHaveLength(3)
    expect(found[0]).toEqual({ box: [12, 6, 28, 14], score: 0.75, classId: 1 })
    expect(found[1]).toEqual({ box: [8, -24, 24, 40], score: 0.75, classId: 0 })
    expect(found[2]).toEqual({ box: [32, 32, 64, 64], score: 0.5, classId: 0 })
  })
})

describe('end-to-end head', () => {
  it('takes rows as they are and leaves unused ones out', () => {
    const data = rowsOf(300, 6, { 0: [1, 2, 3, 4, 0.75, 5], 1: [0, 0, 0, 0, 0, 0], 2: [1, 1, 2, 2, 0.9, -1] })
    expect(decode(plan('end-to-end', undefined), [1, 300, 6], data)).toEqual([
      { box: [1, 2, 3, 4], score: 0.75, classId: 5 },
    ])
  })
})

describe('createHead', () => {
  it.each([
    ['yolov8', plan('yolov8', 3), [1, 8, 84]],
    ['yolov5', plan('yolov5', 3), [1, 252, 9]],
    ['yolox', plan('yolox', 2, [8, 16, 32]), [1, 85, 7]],
    ['end-to-end', plan('end-to-end', undefined), [1, 300, 7]],
    ['any', plan('yolov8', 3), [7, 84]],
  ])('refuses an output that a %s head cannot have', (_, head, shape) => {
    expect(() => createHead(head, input, [shape])).toThrow(`has shape [${shape.join(', ')}]`)
  })
})
