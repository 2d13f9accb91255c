import { describe, expect, it } from 'vitest'
import { FrameReader } from '../../../src/detector/frame-reader.js'
import type { HeadPlan } from '../../../src/detector/heads/head.js'
import { nmsInside } from '../../../src/tools/transform/nms-inside.js'
import ort from '../../../src/backends/onnxruntime/onnxruntime.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { modelFile } from '../../support/transformed.js'

const size = { widthPx: 64, heightPx: 64 }
const cells = 84
const limits = { scoreThreshold: 0.3, iouThreshold: 0.5, maxDetections: 20 }

/** A model that gives on what it is given. */
const passing = (shape: readonly (number | string)[], opset = 13) =>
  modelFile(
    buildOnnx({
      inputs: [{ name: 'in', type: 'float32', shape }],
      outputs: [{ name: 'head', type: 'float32', shape }],
      nodes: [{ op: 'Identity', inputs: ['in'], outputs: ['head'] }],
      opset,
    }),
  )

/** Numbers of a head with boxes that overlap. */
const values = (length: number, seed: number) =>
  Float32Array.from({ length }, (_, at) => Math.abs((Math.sin(at * 12.9898 + seed) * 43758.5453) % 1))

const plan = (kind: HeadPlan['kind']): HeadPlan => ({
  kind,
  output: 'head',
  classes: 3,
  columns: 3,
  strides: kind === 'yolox' ? [8, 16, 32] : [],
})

const shapes = {
  yolov8: ['batch', 7, cells],
  yolov5: ['batch', cells, 8],
  yolox: ['batch', cells, 8],
} as const

describe('NMS inside of the graph', () => {
  it.each(['yolov8', 'yolov5', 'yolox'] as const)(
    'gives the boxes of a %s head that Gantry gives behind it',
    async (kind) => {
      const shape = shapes[kind]
      const { bytes, output, boxes } = nmsInside(passing(shape), plan(kind), size, limits)
      const dims = [2, shape[1], shape[2]]
      const data = values(2 * shape[1] * shape[2], 3)
      // Boxes of some size, where they are not logarithms.
      if (kind === 'yolov5') for (let at = 0; at < data.length; at++) if (at % 8 < 4) data[at]! *= 40
      if (kind === 'yolov8')
        for (let at = 0; at < data.length; at++) if (Math.floor(at / cells) % 7 < 4) data[at]! *= 40
      const session = await ort.InferenceSession.create(bytes)
      const answer = await session.run({ in: new ort.Tensor('float32', data, dims) })
      await session.release()
      expect(answer[output]!.dims).toEqual([2, boxes, 6])
      const rows = answer[output]!.data as Float32Array
      const reader = new FrameReader(plan(kind), size, limits)
      for (const frame of [0, 1]) {
        const { found, kept } = reader.read([{ values: data, shape: dims }], frame)
        expect(kept.length).toBeGreaterThan(5)
        const expected = kept.map((index) => [
          ...found.boxes.subarray(index * 4, index * 4 + 4),
          found.scores[index]!,
          found.classes[index]!,
        ])
        const given = Array.from({ length: boxes }, (_, at) => [
          ...rows.subarray((frame * boxes + at) * 6, (frame * boxes + at + 1) * 6),
        ])
        expect(given.filter((row) => row[4]! > 0)).toHaveLength(kept.length)
        for (const [at, row] of expected.entries())
          for (const [k, value] of row.entries()) expect(given[at]![k]).toBeCloseTo(value, 2)
      }
    },
  )

  it('says why of heads and operators that do not go inside', () => {
    const of =
      (head: HeadPlan, opset = 13) =>
      () =>
        nmsInside(passing(['batch', cells, 8], opset), head, size, limits)
    expect(of(plan('end-to-end'))).toThrow('the head "end-to-end" gives boxes after NMS already')
    expect(of(plan('nanodet'))).toThrow(
      'NMS cannot go inside behind output "head": of a nanodet head all is read',
    )
    expect(of(plan('yolov5'), 10)).toThrow('it has opset 10, and 11 is the first with the operators')
  })
})
