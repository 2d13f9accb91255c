import ort from 'onnxruntime-node'
import { describe, expect, it } from 'vitest'
import { FrameReader } from '../../../src/detector/frame-reader.js'
import type { HeadPlan } from '../../../src/detector/heads/head.js'
import { gridCells } from '../../../src/detector/heads/grid.js'
import { topRows } from '../../../src/detector/heads/top-rows.js'
import { withAddition } from '../../../src/repository/onnx-writer.js'
import { buildOnnx, type Node, type OnnxSpec } from '../../support/onnx-builder.js'

const input = { widthPx: 64, heightPx: 32 }
const strides = [8, 16, 32]
const cells = gridCells(input, strides)
const classes = 3
const limits = { scoreThreshold: 0.5, iouThreshold: 0.5, maxDetections: 300 }
const kinds = ['yolov5', 'yolox', 'yolov8'] as const
type Kind = (typeof kinds)[number]

const planOf = (kind: Kind): HeadPlan => ({ kind, output: 'output0', classes, columns: classes, strides })
const shapeOf = (kind: Kind) => (kind === 'yolov8' ? [4 + classes, cells] : [cells, 5 + classes])

/** A model that gives what it is given. */
function echo(kind: Kind, { opset = 17, half = false }: { opset?: number; half?: boolean } = {}): OnnxSpec {
  const shape = ['N', ...shapeOf(kind)]
  const node: Node = half
    ? { op: 'Cast', inputs: ['in'], outputs: ['output0'], attributes: { to: 10 } }
    : { op: 'Identity', inputs: ['in'], outputs: ['output0'] }
  return {
    opset,
    inputs: [{ name: 'in', type: 'float32', shape }],
    outputs: [{ name: 'output0', type: half ? 'float16' : 'float32', shape }],
    nodes: [node],
  }
}

const infoOf = (spec: OnnxSpec, irVersion = 8) => ({
  outputs: spec.outputs as never,
  opsets: { '': spec.opset ?? 17 },
  irVersion,
})

/** Values of a batch: boxes somewhere, and so many cells of each frame above the threshold. */
function valuesOf(kind: Kind, seed: number, frames: number, hits: number): Float32Array {
  let state = seed
  const next = () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647
  const width = kind === 'yolov8' ? 4 + classes : 5 + classes
  const values = new Float32Array(frames * cells * width)
  const put = (frame: number, cell: number, number: number, value: number) => {
    const place = kind === 'yolov8' ? number * cells + cell : cell * width + number
    values[frame * cells * width + place] = value
  }
  for (let frame = 0; frame < frames; frame++)
    for (let cell = 0; cell < cells; cell++) {
      const hit = (cell * 5 + seed) % cells
      const isHit = hit < hits
      const box = kind === 'yolox' ? [next(), next(), next(), next()] : [next() * 64, next() * 32, 9, 9]
      box.forEach((value, number) => put(frame, cell, number, value))
      if (kind !== 'yolov8') put(frame, cell, 4, isHit ? 0.9 : 0.3)
      for (let c = 0; c < classes; c++)
        put(frame, cell, width - classes + c, isHit ? 0.6 + hit * 0.015 + c * 0.004 : next() * 0.4)
    }
  return values
}

async function boxesOf(model: Uint8Array, plan: HeadPlan, values: Float32Array, kind: Kind, frames: number) {
  const session = await ort.InferenceSession.create(model)
  try {
    const fed = new ort.Tensor('float32', values, [frames, ...shapeOf(kind)])
    const { [plan.output]: output } = await session.run({ in: fed }, [plan.output])
    const reader = new FrameReader(plan, input, limits)
    const read = { values: output!.data as Float32Array, shape: output!.dims }
    return Array.from({ length: frames }, (_, frame) => {
      const { found, kept } = reader.read([read], frame)
      return kept.map((index) => [
        found.classes[index]!,
        found.scores[index]!,
        ...found.boxes.slice(index * 4, index * 4 + 4),
      ])
    })
  } finally {
    await session.release()
  }
}

function thinned(kind: Kind, spec: OnnxSpec, rows: number) {
  const top = topRows(planOf(kind), input, infoOf(spec), rows)
  if (typeof top === 'string') throw new Error(top)
  return { model: withAddition(buildOnnx(spec), top.addition), plan: top.head }
}

describe('rows that a graph chooses', () => {
  const cases = kinds.flatMap((kind) => [11, 13, 17, 18, 21].map((opset) => [kind, opset] as const))
  it.each(cases)('of %s with opset %d are the boxes of all rows', async (kind, opset) => {
    const spec = echo(kind, { opset })
    const { model, plan } = thinned(kind, spec, 12)
    for (const [seed, hits] of [
      [1, 0],
      [2, 1],
      [3, 7],
      [4, 12],
    ] as const)
      for (const frames of [1, 3]) {
        const values = valuesOf(kind, seed, frames, hits)
        const all = await boxesOf(buildOnnx(spec), planOf(kind), values, kind, frames)
        const few = await boxesOf(model, plan, values, kind, frames)
        expect(all.flat().length > 0).toBe(hits > 0)
        expect(few.map((frame) => frame.length)).toEqual(all.map((frame) => frame.length))
        few.flat(2).forEach((value, index) => expect(value).toBeCloseTo(all.flat(2)[index]!, 3))
      }
  })

  it.each(kinds)('of %s in float16 are handed over as float32', async (kind) => {
    const { model, plan } = thinned(kind, echo(kind, { half: true }), 12)
    const values = valuesOf(kind, 5, 2, 6)
    const all = await boxesOf(buildOnnx(echo(kind)), planOf(kind), values, kind, 2)
    const few = await boxesOf(model, plan, values, kind, 2)
    expect(few.flat()).toHaveLength(all.flat().length)
    few.flat(2).forEach((value, index) => expect(Math.abs(value - all.flat(2)[index]!)).toBeLessThan(0.1))
  })

  it('are the best ones where more reach the threshold', async () => {
    const spec = echo('yolov5')
    const { model, plan } = thinned('yolov5', spec, 5)
    const values = valuesOf('yolov5', 6, 1, 20)
    const [all = []] = await boxesOf(buildOnnx(spec), planOf('yolov5'), values, 'yolov5', 1)
    const [few = []] = await boxesOf(model, plan, values, 'yolov5', 1)
    expect(few.length).toBeGreaterThan(0)
    expect(few).toEqual(all.slice(0, few.length))
  })

  it.each([
    ['another head', { ...planOf('yolov5'), kind: 'nanodet' as const }, {}, 'of a nanodet head all is read'],
    ['several outputs', { ...planOf('yolov5'), others: ['more'] }, {}, 'of a yolov5 head all is read'],
    ['no classes', { ...planOf('yolov5'), classes: undefined }, {}, 'it has no classes'],
    ['an old opset', planOf('yolov5'), { opsets: { '': 10 } }, 'it has opset 10, and 11 is the first'],
    ['constants as inputs', planOf('yolov5'), { irVersion: 3 }, 'it has IR version 3'],
    [
      'integers',
      planOf('yolov5'),
      { outputs: [{ name: 'output0', type: 'uint8', shape: [1, cells, 8] }] },
      'uint8',
    ],
    ['no such output', { ...planOf('yolov5'), output: 'x' }, {}, 'it has no output "x"'],
  ] as const)('are not chosen of %s', (_, plan, info, reason) => {
    const said = topRows(plan, input, { ...infoOf(echo('yolov5')), ...info }, 12)
    expect(said).toContain(reason)
  })

  it('are chosen where the file does not tell how many there are, and the input has more cells', () => {
    const free = {
      ...infoOf(echo('yolov5')),
      outputs: [{ name: 'output0', type: 'float32', shape: ['N', '?', 8] }],
    }
    expect(topRows(planOf('yolov5'), input, free as never, 41)).toMatchObject({ head: { kind: 'yolov5' } })
    expect(topRows(planOf('yolov5'), input, free as never, 42)).toBe(
      'it has 42 rows, which is not more than 42',
    )
  })

  it('are not chosen where there are not more', () => {
    expect(topRows(planOf('yolov5'), input, infoOf(echo('yolov5')), cells)).toMatch(/not more than/)
  })
})
