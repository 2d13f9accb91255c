import { describe, expect, it } from 'vitest'
import { cameraDetectorOf } from '../../support/camera-detector-of.js'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { startDetector } from '../../support/detector-rig.js'
import type { Constant, TensorSpec } from '../../support/onnx-builder.js'
import { addModel, constantOnnx, namesMetadata } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

/** All models take pictures of 64x64, so that a frame is the input. */
const images: TensorSpec = { name: 'images', type: 'float32', shape: [1, 3, 64, 64] }
const names = namesMetadata(['cat', 'dog'])
const dog = { label: 'dog', score: 0.875 }

type Box = readonly [number, number, number, number]
const boxPx = ([x1, y1, x2, y2]: Box) => ({ x1, y1, x2, y2 })

function f32(
  name: string,
  shape: readonly number[],
  values: Readonly<Record<number, number>> | readonly number[] = {},
): Constant {
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1))
  for (const [index, value] of Object.entries(values)) data[Number(index)] = value
  return { name, shape, data }
}

const i64 = (name: string, shape: readonly number[], values: readonly number[]): Constant => ({
  name,
  shape,
  data: BigInt64Array.from(values, BigInt),
})

async function detect(onnx: Uint8Array, config?: string) {
  const repository = tempDir()
  addModel(repository, 'm', { onnx, ...(config === undefined ? {} : { config }) })
  const plan = planDetector(cameraDetectorOf(repository, 'm'))
  const rig = await startDetector({ repositoryDir: repository, ensemble: 'm', inference: { instances: 1 } })
  const { result, error } = await rig.detect(rig.frame('a', 1))
  if (error !== undefined) throw error as Error
  return {
    plan,
    found: result?.detections.map(({ label, score, boxPx: box }) => ({
      label,
      score: round(score),
      box: rounded(box),
    })),
  }
}

const round = (value: number) => Math.round(value * 1e4) / 1e4
const rounded = (box: Readonly<Record<'x1' | 'y1' | 'x2' | 'y2', number>>) => ({
  x1: round(box.x1),
  y1: round(box.y1),
  x2: round(box.x2),
  y2: round(box.y2),
})
const only = (box: Box, score = 0.875, label = 'dog') => [
  { label, score: round(score), box: rounded(boxPx(box)) },
]
const parameters = (values: Readonly<Record<string, string>>) =>
  Object.entries(values)
    .map(([key, value]) => `parameters { key: "gantry.${key}" value { string_value: "${value}" } }`)
    .join('\n')

describe('boxes, scores and labels in outputs of their own', () => {
  it('RT-DETR: scales its boxes by an input that is told the size of the picture, width first', async () => {
    const onnx = constantOnnx(
      [images, { name: 'orig_target_sizes', type: 'int64', shape: ['N', 2] }],
      [
        f32('relative', [1, 3, 4], [0.25, 0.125, 0.5, 0.75, 0, 0, 1, 1, 0, 0, 1, 1]),
        f32('scores', [1, 3], [0.875, 0.25, 0]),
        i64('labels', [1, 3], [1, 0, 0]),
        i64('axis', [1], [1]),
      ],
      [
        { op: 'Cast', inputs: ['orig_target_sizes'], outputs: ['size'], attributes: { to: 1 } },
        { op: 'Concat', inputs: ['size', 'size'], outputs: ['four'], attributes: { axis: 1 } },
        { op: 'Unsqueeze', inputs: ['four', 'const_axis'], outputs: ['factor'] },
        { op: 'Mul', inputs: ['const_relative', 'factor'], outputs: ['boxes'] },
      ],
      [{ name: 'boxes', type: 'float32', shape: [1, 3, 4] }],
      names,
    )
    const { plan, found } = await detect(onnx)
    expect(plan.head).toMatchObject({ kind: 'boxes', output: 'boxes', others: ['scores', 'labels'] })
    expect(plan.input.sizeInput).toEqual({ name: 'orig_target_sizes', type: 'int64', order: 'wh' })
    expect(found).toEqual(only([16, 8, 32, 48]))
  })

  it("TensorFlow's detection API: y before x, parts of the picture, classes from 1", async () => {
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [
          f32('detection_boxes', [1, 2, 4], [0.125, 0.25, 0.75, 0.5]),
          f32('detection_scores', [1, 2], [0.875]),
          f32('detection_classes', [1, 2], [2, 1]),
          f32('num_detections', [1], [1]),
        ],
        [],
        [],
        names,
      ),
    )
    expect(plan.head.reason).toContain("TensorFlow's detection API")
    expect(found).toEqual(only([16, 8, 32, 48]))
  })

  it('torchvision: no batch dimension, pixels, classes from 1', async () => {
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [f32('boxes', [2, 4], [16, 8, 32, 48]), f32('scores', [2], [0.875]), i64('labels', [2], [2, 0])],
        [],
        [],
        names,
      ),
    )
    expect(plan).toMatchObject({
      maxBatchSize: 1,
      head: { kind: 'boxes', options: { firstClass: 1, unit: 'px' } },
    })
    expect(found).toEqual(only([16, 8, 32, 48]))
  })
})

const logit = (p: number) => Math.log(p / (1 - p))

describe('DETR without its postprocessing', () => {
  it('sigmoid, where there are as many logits as classes', async () => {
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [
          f32('logits', [1, 2, 2], [-4, logit(0.875), -4, -4]),
          f32('pred_boxes', [1, 2, 4], [0.375, 0.4375, 0.25, 0.625]),
        ],
        [],
        [],
        names,
      ),
    )
    expect(plan.head).toMatchObject({ kind: 'detr', classes: 2, options: { activation: 'sigmoid' } })
    expect(found).toEqual(only([16, 8, 32, 48]))
  })

  it('softmax with nothing last, where there is one logit more', async () => {
    const logits = [0, 3, 1, 0, 0, 5]
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [
          f32('logits', [1, 2, 3], logits),
          f32('pred_boxes', [1, 2, 4], [0.375, 0.4375, 0.25, 0.625, 0.5, 0.5, 1, 1]),
        ],
        [],
        [],
        names,
      ),
    )
    expect(plan.head).toMatchObject({
      kind: 'detr',
      classes: 2,
      options: { activation: 'softmax', background: 'last' },
    })
    const score = Math.exp(3) / (Math.exp(0) + Math.exp(3) + Math.exp(1))
    expect(found).toEqual(only([16, 8, 32, 48], score))
  })
})

describe('SSD', () => {
  it('reads decoded boxes in parts of the picture beside scores with the background first, and suppresses overlaps', async () => {
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [
          f32('scores', [1, 3, 3], [0.1, 0, 0.875, 0.2, 0, 0.75, 0.9, 0.05, 0.05]),
          f32('boxes', [1, 3, 4], [0.25, 0.125, 0.5, 0.75, 0.26, 0.125, 0.5, 0.75]),
        ],
        [],
        [],
        names,
      ),
    )
    expect(plan.head).toMatchObject({
      kind: 'ssd',
      classes: 2,
      options: { background: 'first', firstClass: 1 },
    })
    expect(found).toEqual(only([16, 8, 32, 48]))
  })

  it('decodes offsets from priors by the variances 0.1 and 0.2', async () => {
    const prior = [0.5, 0.5, 0.4, 0.2] as const
    const offsets = [1, -2, 0.5, 1] as const
    const { plan, found } = await detect(
      constantOnnx(
        [images],
        [f32('conf', [1, 1, 3], [0, 0, 0.875]), f32('loc', [1, 1, 4], offsets), f32('priors', [1, 4], prior)],
        [],
        [],
        names,
      ),
    )
    const cx = prior[0] + offsets[0] * 0.1 * prior[2]
    const cy = prior[1] + offsets[1] * 0.1 * prior[3]
    const w = prior[2] * Math.exp(offsets[2] * 0.2)
    const h = prior[3] * Math.exp(offsets[3] * 0.2)
    expect(plan.head.others).toEqual(['loc', 'priors'])
    const [detection] = found ?? []
    expect(detection).toMatchObject(dog)
    expect(detection?.box.x1).toBeCloseTo((cx - w / 2) * 64, 3)
    expect(detection?.box.y1).toBeCloseTo((cy - h / 2) * 64, 3)
    expect(detection?.box.x2).toBeCloseTo((cx + w / 2) * 64, 3)
    expect(detection?.box.y2).toBeCloseTo((cy + h / 2) * 64, 3)
  })
})

/** Distances of one cell as logits whose distribution lies on one bin. */
const peaked = (bins: number, distances: readonly number[]) =>
  distances.flatMap((distance) => Array.from({ length: bins }, (_, bin) => (bin === distance ? 50 : 0)))

describe('NanoDet', () => {
  it('reads scores and distances of each stride, from the middle of the cells', async () => {
    const cell = 3 * 8 + 2
    const levels = [8, 16, 32].flatMap((stride): Constant[] => {
      const cells = (64 / stride) ** 2
      const scores = f32(
        `cls_pred_stride_${stride}`,
        [1, cells, 2],
        stride === 8 ? { [cell * 2 + 1]: 0.875 } : {},
      )
      const distances = f32(`dis_pred_stride_${stride}`, [1, cells, 32])
      if (stride === 8) distances.data.set(peaked(8, [1, 2, 2, 1]) as never, cell * 32)
      return [scores, distances]
    })
    const { plan, found } = await detect(constantOnnx([images], levels, [], [], names))
    expect(plan.head).toMatchObject({
      kind: 'nanodet',
      classes: 2,
      strides: [8, 16, 32],
      options: { regMax: 7, offset: 0.5 },
    })
    expect(plan.input).toMatchObject({ channels: 'bgr', range: '0-255' })
    // Cell (2, 3) of stride 8: its middle is (20, 28).
    expect(found).toEqual(only([12, 12, 36, 36]))
  })

  it('reads one output with both beside each other, from the corner of the cells, and means between bins', async () => {
    const rows = 64 + 16 + 4 + 1
    const row = 64 + 5
    const values = f32('output', [1, rows, 2 + 32])
    values.data.set([0, 0.875, ...peaked(8, [1, 1, 1, 0])] as never, row * 34)
    // The lower side lies evenly between bins 0 and 1.
    values.data[row * 34 + 2 + 3 * 8 + 1] = 50
    const { plan, found } = await detect(constantOnnx([images], [values], [], [], names))
    expect(plan.head).toMatchObject({
      kind: 'nanodet',
      strides: [8, 16, 32, 64],
      options: { regMax: 7, offset: 0 },
    })
    // Cell (1, 1) of stride 16.
    expect(found).toEqual(only([0, 0, 32, 24]))
  })
})

describe('raw grids', () => {
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x))
  const raw = [0.5, -0.25, 0.2, 0.4, 8, -9, 8]

  it('decodes cells of [N, anchors, H, W, 5 + classes] as YOLOv5 does', async () => {
    const levels = [8, 4, 2].map((size, level) =>
      f32(
        `p${level}`,
        [1, 3, size, size, 7],
        // Anchor 1 of the coarser grids' first: row 2, column 1 of 4x4.
        level === 1
          ? Object.fromEntries(raw.map((v, i) => [((1 * 4 + 2) * 4 + 1) * 7 + i, v]))
          : Object.fromEntries(Array.from({ length: 3 * size * size }, (_, c) => [c * 7 + 4, -9])),
      ),
    )
    const mine = levels[1]!.data as Float32Array
    for (let c = 0; c < 48; c++) if (c !== (1 * 4 + 2) * 4 + 1) mine[c * 7 + 4] = -9
    const { plan, found } = await detect(constantOnnx([images], levels, [], [], names))
    expect(plan.head).toMatchObject({ kind: 'grid', classes: 2, strides: [8, 16, 32] })
    const [x = 0, y = 0, w = 0, h = 0] = raw.map(sigmoid)
    const [cx, cy] = [(2 * x - 0.5 + 1) * 16, (2 * y - 0.5 + 2) * 16]
    const [bw, bh] = [(2 * w) ** 2 * 62, (2 * h) ** 2 * 45]
    const clip = (v: number) => Math.min(64, Math.max(0, v))
    expect(found).toHaveLength(1)
    expect(found?.[0]?.score).toBeCloseTo(sigmoid(8) ** 2, 3)
    expect(found?.[0]?.box.x1).toBeCloseTo(clip(cx - bw / 2), 2)
    expect(found?.[0]?.box.x2).toBeCloseTo(clip(cx + bw / 2), 2)
    expect(found?.[0]?.box.y1).toBeCloseTo(clip(cy - bh / 2), 2)
    expect(found?.[0]?.box.y2).toBeCloseTo(clip(cy + bh / 2), 2)
  })

  it('decodes [N, anchors * (5 + classes), H, W] as YOLOv3 does, with anchors of its own', async () => {
    const level = f32('p', [1, 7, 4, 4], Object.fromEntries(raw.map((v, i) => [i * 16 + 2 * 4 + 1, v])))
    for (let c = 0; c < 16; c++) if (c !== 9) level.data[4 * 16 + c] = -9
    const { plan, found } = await detect(
      constantOnnx([images], [level], [], [], names),
      parameters({ head: 'grid', head_anchors: '20,10' }),
    )
    expect(plan.head).toMatchObject({ kind: 'grid', strides: [16], options: { decoding: 'v3' } })
    const cx = (sigmoid(0.5) + 1) * 16
    const cy = (sigmoid(-0.25) + 2) * 16
    expect(found?.[0]?.box.x1).toBeCloseTo(cx - (Math.exp(0.2) * 20) / 2, 2)
    expect(found?.[0]?.box.y2).toBeCloseTo(cy + (Math.exp(0.4) * 10) / 2, 2)
  })
})

describe('int8 models', () => {
  it('reads a uint8 output by the scale and zero point of the configuration', async () => {
    const anchors = 84
    const data = new Uint8Array(6 * anchors).fill(10)
    // (value - 10) * 0.5: centre (32, 16), size 20x8, class 1.
    ;[74, 42, 50, 26, 10, 12].forEach((value, row) => (data[row * anchors] = value))
    const onnx = constantOnnx([images], [{ name: 'output0', shape: [1, 6, anchors], data }], [], [], names)
    const { found } = await detect(onnx, parameters({ head_scale: '0.5', head_zero_point: '10' }))
    expect(found).toEqual(only([22, 12, 42, 20], 1))
  })

  it('asks for the scale where there is none', async () => {
    const onnx = constantOnnx(
      [images],
      [{ name: 'output0', shape: [1, 6, 84], data: new Uint8Array(504) }],
      [],
      [],
      names,
    )
    await expect(detect(onnx)).rejects.toThrow('integers need gantry.head_scale')
  })
})

describe('heads that are spelled out', () => {
  it('takes outputs of any name in the order of the kind', async () => {
    const onnx = constantOnnx(
      [images],
      [f32('a', [1, 1, 4], [8, 16, 48, 32]), f32('b', [1, 1], [0.875]), f32('c', [1, 1], [3])],
      [],
      [],
      names,
    )
    const { plan, found } = await detect(
      onnx,
      parameters({ head: 'boxes', head_outputs: 'a,b,c', head_box: 'yxyx', head_first_class: '2' }),
    )
    expect(plan.head.reason).toBe('gantry.head is set')
    expect(found).toEqual(only([16, 8, 32, 48]))
  })

  it('normalises float inputs by gantry.mean and gantry.std', async () => {
    const onnx = constantOnnx([images], [f32('out', [1, 300, 6])], [], [], names)
    const { plan } = await detect(onnx, parameters({ mean: '0.485,0.456,0.406', std: '0.229,0.224,0.225' }))
    expect(plan.input.normalise).toEqual({ mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] })
    await expect(detect(onnx, parameters({ mean: '1,2' }))).rejects.toThrow('gantry.mean has 2 numbers')
  })
})
