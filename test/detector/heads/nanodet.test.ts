import { describe, expect, it } from 'vitest'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { HeadUnknownError } from '../../../src/detector/errors.js'
import { Candidates } from '../../../src/detector/heads/candidates.js'
import { createHead } from '../../../src/detector/heads/create-head.js'
import type { CellLayout } from '../../../src/detector/heads/cell-layout.js'
import { type HeadPlan, outputsOf } from '../../../src/detector/heads/head.js'
import { headSettings } from '../../../src/detector/heads/head-settings.js'
import { type HeadClues, recogniseHead } from '../../../src/detector/heads/recognise-head.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { cameraDetectorOf } from '../../support/camera-detector-of.js'
import { startDetector } from '../../support/detector-rig.js'
import { addModel, constantOnnx, namesMetadata } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

const input = { widthPx: 64, heightPx: 64 }
const three = [8, 16, 32]
const four = [8, 16, 32, 64]
const bins = 32
/** Cell (2, 3) of stride 8, whose middle is (20, 28). */
const cell = 3 * 8 + 2

type Part = Readonly<{ side: number; width: number; data: Float32Array }>
type Output = Readonly<{ name: string; shape: readonly number[]; data: Float32Array }>

/** Rows of a stride; those of stride 8 have one box of the last class. */
function scoresOf(stride: number, classes: number): Part {
  const side = Math.ceil(64 / stride)
  const data = new Float32Array(side * side * classes)
  if (stride === 8) data[cell * classes + classes - 1] = 0.875
  return { side, width: classes, data }
}

function distancesOf(stride: number): Part {
  const side = Math.ceil(64 / stride)
  const data = new Float32Array(side * side * bins)
  if (stride === 8) [1, 2, 2, 1].forEach((distance, at) => (data[cell * bins + at * 8 + distance] = 50))
  return { side, width: bins, data }
}

/** Both, row by row. */
function beside(a: Part, b: Part): Part {
  const width = a.width + b.width
  const data = new Float32Array((a.data.length / a.width) * width)
  for (let row = 0; row * width < data.length; row++) {
    data.set(a.data.subarray(row * a.width, (row + 1) * a.width), row * width)
    data.set(b.data.subarray(row * b.width, (row + 1) * b.width), row * width + a.width)
  }
  return { side: a.side, width, data }
}

function joined(parts: readonly Part[]): Part {
  const [{ width } = { width: 0 }] = parts
  return { side: 0, width, data: Float32Array.from(parts.flatMap(({ data }) => [...data])) }
}

function output(name: string, { side, width, data }: Part, layout: CellLayout, hasBatch = true): Output {
  const cells = data.length / width
  const planar = new Float32Array(data.length)
  data.forEach((value, at) => (planar[(at % width) * cells + Math.floor(at / width)] = value))
  const shapes = {
    rows: [cells, width],
    columns: [width, cells],
    maps: [width, side, side],
    pixels: [side, side, width],
  }
  const shape = hasBatch ? [1, ...shapes[layout]] : shapes[layout]
  return { name, shape, data: layout === 'columns' || layout === 'maps' ? planar : data }
}

/** Outputs that are numbered as exporters number them. */
const numbered = (parts: readonly Part[], layout: CellLayout, hasBatch = true) =>
  parts.map((part, at) => output(String(792 + at * 3), part, layout, hasBatch))
const pairs = (strides: readonly number[], classes = 2) =>
  strides.flatMap((stride) => [scoresOf(stride, classes), distancesOf(stride)])
const apart = (strides: readonly number[], classes = 2) => [
  ...strides.map((stride) => scoresOf(stride, classes)),
  ...strides.map(distancesOf),
]

function clues(outputs: readonly Output[], over: Partial<HeadClues> = {}): HeadClues {
  const tensors = outputs.map(({ name, shape }) => ({ name, shape, type: 'float32' as const }))
  return { model: 'm', input, outputs: tensors, labels: undefined, explicit: undefined, ...over }
}

const settings = (text: Readonly<Record<string, string>>) =>
  headSettings(
    'm',
    parseModelConfig(
      Object.entries(text)
        .map(([key, value]) => `parameters { key: "gantry.${key}" value { string_value: "${value}" } }`)
        .join('\n'),
      'config.pbtxt',
    ),
  )

function boxesBy(plan: HeadPlan, outputs: readonly Output[]): number[][] {
  const read = outputsOf(plan).map((name) => outputs.find((each) => each.name === name)!)
  const head = createHead(
    plan,
    input,
    read.map(({ shape }) => shape),
  )
  const found = new Candidates()
  head.decode(
    read.map(({ data }) => data),
    0,
    0.3,
    found,
  )
  return Array.from({ length: found.count }, (_, at) =>
    [...found.boxes.subarray(at * 4, at * 4 + 4), found.scores[at]!, found.classes[at]!].map(
      (value) => Math.round(value * 1e4) / 1e4,
    ),
  )
}

describe('R67: NanoDet and PicoDet whose outputs have no names', () => {
  it.each([
    ['a pair for each stride', 'nanodet', numbered(pairs(three), 'rows')],
    ['all scores, then all distances', 'nanodet', numbered(apart(three), 'rows')],
    ['in another order', 'nanodet', numbered(apart(three), 'rows').toReversed()],
    ['transposed', 'nanodet', numbered(apart(three), 'columns')],
    ['as maps', 'nanodet', numbered(pairs(three), 'maps')],
    ['pixel by pixel', 'nanodet', numbered(pairs(three), 'pixels')],
    ['without a batch dimension', 'nanodet', numbered(apart(three), 'rows', false)],
    ['of four strides', 'picodet', numbered(apart(four), 'rows')],
    ['of four strides, transposed', 'picodet', numbered(pairs(four), 'columns')],
    [
      'of all strides in two outputs',
      'nanodet',
      numbered([joined(three.map((stride) => scoresOf(stride, 2))), joined(three.map(distancesOf))], 'rows'),
    ],
    [
      'of all strides in two outputs, transposed, distances first',
      'picodet',
      numbered([joined(four.map(distancesOf)), joined(four.map((stride) => scoresOf(stride, 2)))], 'columns'),
    ],
  ] as const)('%s', (_, kind, outputs) => {
    for (const labels of [2, undefined]) {
      const plan = recogniseHead(clues(outputs, { labels }))
      expect(plan).toMatchObject({ kind, classes: 2, options: { regMax: 7, offset: 0.5 } })
      expect(boxesBy(plan, outputs)).toEqual([[12, 12, 36, 36, 0.875, 1]])
    }
  })

  it.each([
    ['rows', joined(four.map((stride) => beside(scoresOf(stride, 2), distancesOf(stride)))), 'rows'],
    ['columns', joined(four.map((stride) => beside(scoresOf(stride, 2), distancesOf(stride)))), 'columns'],
    [
      'rows of three strides',
      joined(three.map((stride) => beside(scoresOf(stride, 2), distancesOf(stride)))),
      'rows',
    ],
  ] as const)('both in one output, in %s, with labels', (_, part, layout) => {
    const outputs = [output('output', part, layout)]
    const plan = recogniseHead(clues(outputs, { labels: 2 }))
    expect(plan).toMatchObject({ kind: 'nanodet', classes: 2, options: { regMax: 7, offset: 0 } })
    // From the corner of the cell.
    expect(boxesBy(plan, outputs)).toEqual([[8, 8, 32, 32, 0.875, 1]])
  })

  it.each(['rows', 'maps'] as const)('both in an output for each stride, in %s, with labels', (layout) => {
    const parts = three.map((stride) => beside(scoresOf(stride, 2), distancesOf(stride)))
    const outputs = numbered(parts, layout)
    const plan = recogniseHead(clues(outputs, { labels: 2 }))
    expect(plan).toMatchObject({ kind: 'nanodet', classes: 2 })
    expect(boxesBy(plan, outputs)).toHaveLength(1)
  })

  it('believes shapes more than names that contradict them', () => {
    const names = ['cls_score0', 'bbox_pred0', 'cls_score1', 'bbox_pred1', 'cls_score2', 'bbox_pred2']
    const outputs = numbered(apart(three), 'rows').map((each, at) => ({ ...each, name: names[at]! }))
    const plan = recogniseHead(clues(outputs))
    expect(outputsOf(plan)).toEqual([
      'cls_score0',
      'bbox_pred1',
      'bbox_pred0',
      'cls_score2',
      'cls_score1',
      'bbox_pred2',
    ])
    expect(boxesBy(plan, outputs)).toEqual([[12, 12, 36, 36, 0.875, 1]])
  })

  it('reads the one output of the published models, of 80 classes, without labels', () => {
    const part = joined(four.map((stride) => beside(scoresOf(stride, 80), distancesOf(stride))))
    const outputs = [output('output', part, 'rows')]
    expect(boxesBy(recogniseHead(clues(outputs)), outputs)).toEqual([[8, 8, 32, 32, 0.875, 79]])
  })

  it('applies the sigmoid that an export left out', () => {
    const logits = apart(three).map((part) =>
      part.width === 2 ? { ...part, data: part.data.map((value) => (value > 0 ? Math.log(7) : -6)) } : part,
    )
    const outputs = numbered(logits, 'rows')
    const plan = recogniseHead(clues(outputs, { settings: settings({ head_activation: 'sigmoid' }) }))
    expect(boxesBy(plan, outputs)).toEqual([[12, 12, 36, 36, 0.875, 1]])
  })

  it('leaves out YOLOv8 in the same form, whose pictures are made otherwise', () => {
    const outputs = three.flatMap((stride, at) => {
      const side = 64 / stride
      return [
        { name: `a${at}`, type: 'float32' as const, shape: [1, 64, side, side] },
        { name: `b${at}`, type: 'float32' as const, shape: [1, 80, side, side] },
      ]
    })
    expect(() => recogniseHead(clues([], { outputs }))).toThrow(HeadUnknownError)
  })
})

describe('R67: what shapes do not tell is refused with the setting to write', () => {
  const refused = (given: HeadClues) => {
    try {
      return recogniseHead(given)
    } catch (error) {
      return error
    }
  }
  const like = (widths: readonly number[]) =>
    three.flatMap((stride, at) =>
      widths.map((width, index) => ({
        name: String(at * 10 + index),
        type: 'float32' as const,
        shape: [1, (64 / stride) ** 2, width],
      })),
    )

  it('32 classes and 32 numbers of distances', () => {
    const outputs = like([32, 32])
    expect(refused(clues([], { outputs }))).toMatchObject({
      code: 'GANTRY_HEAD_UNKNOWN',
      hint: expect.stringContaining('gantry.head_outputs') as string,
    })
    const ordered = settings({ head_outputs: '0,1,10,11,20,21' })
    expect(recogniseHead(clues([], { outputs, explicit: 'nanodet', settings: ordered }))).toMatchObject({
      strides: three,
      classes: 32,
      options: { regMax: 7 },
    })
  })

  it('44 classes or 44 numbers of distances', () => {
    const outputs = like([32, 44])
    expect(refused(clues([], { outputs }))).toMatchObject({
      hint: 'Add a labels.txt, or set gantry.head_classes to "32" or "44" in config.pbtxt.',
    })
    for (const classes of [32, 44]) {
      const set = settings({ head_classes: String(classes) })
      expect(recogniseHead(clues([], { outputs, settings: set })).classes).toBe(classes)
      expect(recogniseHead(clues([], { outputs, labels: classes })).classes).toBe(classes)
    }
  })

  it('one output that may be of YOLOX', () => {
    const outputs = [{ name: 'output', type: 'float32' as const, shape: [1, 85, 39] }]
    expect(refused(clues([], { outputs }))).toMatchObject({
      message: expect.stringContaining('7 classes of NanoDet or 34 of YOLOX') as string,
      hint: expect.stringContaining('gantry.head to "nanodet" or "yolox"') as string,
    })
    expect(recogniseHead(clues([], { outputs, labels: 7 }))).toMatchObject({ kind: 'nanodet', classes: 7 })
    expect(recogniseHead(clues([], { outputs, labels: 34 }))).toMatchObject({ kind: 'yolox', classes: 34 })
    expect(recogniseHead(clues([], { outputs, explicit: 'nanodet' }))).toMatchObject({ classes: 7 })
    expect(recogniseHead(clues([], { outputs, explicit: 'yolox' }))).toMatchObject({ classes: 34 })
  })

  it('outputs that are set and have the cells of no usual stride', () => {
    const outputs = [
      { name: 'a', type: 'float32' as const, shape: [1, 256, 2] },
      { name: 'b', type: 'float32' as const, shape: [1, 256, 32] },
    ]
    const set = (text: Readonly<Record<string, string>>) =>
      clues([], { outputs, explicit: 'nanodet', settings: settings({ head_outputs: 'a,b', ...text }) })
    expect(refused(set({}))).toMatchObject({
      hint: expect.stringContaining('Set gantry.head_strides') as string,
    })
    expect(recogniseHead(set({ head_strides: '4' }))).toMatchObject({ classes: 2, strides: [4] })
  })
})

describe('R67: decoded boxes beside scores, without names', () => {
  const rows = 64 + 16 + 4 + 1
  it.each([
    ['rows', [1, rows, 2]],
    ['columns', [1, 2, rows]],
  ])('scores in %s', (_, shape) => {
    const boxes = new Float32Array(rows * 4)
    boxes.set([8, 8, 32, 32], 5 * 4)
    const scores = new Float32Array(rows * 2)
    scores[shape[1] === rows ? 5 * 2 + 1 : rows + 5] = 0.875
    const outputs = [
      { name: 'concat_14.tmp_0', shape: [1, rows, 4], data: boxes },
      { name: 'concat_15.tmp_0', shape, data: scores },
    ]
    const plan = recogniseHead(clues(outputs))
    expect(plan).toMatchObject({ kind: 'ssd', classes: 2, options: { unit: 'px', background: 'none' } })
    expect(boxesBy(plan, outputs)).toEqual([[8, 8, 32, 32, 0.875, 1]])
  })

  it('boxes, scores and whole numbers are told apart by their types', () => {
    const tensor = (name: string, type: 'float32' | 'int64', shape: readonly (number | string)[]) => ({
      name,
      type,
      shape,
    })
    const torchvision = [
      tensor('1', 'int64', ['n']),
      tensor('2', 'float32', ['n', 4]),
      tensor('3', 'float32', ['n']),
    ]
    expect(recogniseHead(clues([], { outputs: torchvision }))).toMatchObject({
      kind: 'boxes',
      output: '2',
      others: ['3', '1'],
      options: { firstClass: 1 },
    })
    const rtdetr = [
      tensor('1', 'int64', ['N', 300]),
      tensor('2', 'float32', ['N', 300, 4]),
      tensor('3', 'float32', ['N', 300]),
    ]
    expect(recogniseHead(clues([], { outputs: rtdetr }))).toMatchObject({
      kind: 'boxes',
      options: { firstClass: 0 },
    })
  })
})

it('R67: a real model with numbers for names finds its box, with the pixels that its kind takes', async () => {
  const metadata = namesMetadata(['cat', 'dog'])
  const images = { name: 'input.1', type: 'float32', shape: [1, 3, 64, 64] } as const
  for (const [strides, kind, channels] of [
    [three, 'nanodet', 'bgr'],
    [four, 'picodet', 'rgb'],
  ] as const) {
    const repositoryDir = tempDir()
    const onnx = constantOnnx([images], numbered(apart(strides), 'rows'), [], [], metadata)
    addModel(repositoryDir, 'm', { onnx })
    expect(planDetector(cameraDetectorOf(repositoryDir, 'm')).input).toMatchObject({
      channels,
      range: '0-255',
    })
    const rig = await startDetector({ repositoryDir, ensemble: 'm', inference: { instances: 1 } })
    expect(rig.detector.info.head).toBe(kind)
    const { result } = await rig.detect(rig.frame('a', 1))
    expect(result?.detections).toEqual([
      { label: 'dog', score: 0.875, boxPx: { x1: 12, y1: 12, x2: 36, y2: 36 } },
    ])
  }
})
