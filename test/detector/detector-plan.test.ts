import { describe, expect, it } from 'vitest'
import { planDetector } from '../../src/detector/detector-plan.js'
import type { CameraShapes } from '../../src/detector/input-size.js'
import { readModel } from '../../src/repository/model-definition.js'
import { openOnnxModel } from '../../src/repository/onnx-model.js'
import { buildOnnx, type TensorSpec } from '../support/onnx-builder.js'
import { addModel, namesMetadata } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const output: TensorSpec = { name: 'output0', type: 'float32', shape: ['N', 6, 84] }

function plan(
  inputs: readonly TensorSpec[],
  options: {
    config?: string
    labels?: string
    metadata?: Record<string, string>
    outputs?: readonly TensorSpec[]
    shapes?: CameraShapes
  } = {},
) {
  const { outputs = [output], metadata, shapes, ...files } = options
  const repository = tempDir()
  const onnx = buildOnnx({ inputs, outputs, nodes: [], ...(metadata === undefined ? {} : { metadata }) })
  addModel(repository, 'm', { onnx, ...files })
  return planDetector(openOnnxModel(readModel(repository, 'm')), shapes)
}

const nhwc: TensorSpec = { name: 'images', type: 'uint8', shape: ['N', 64, 64, 3] }
const open: TensorSpec = { name: 'images', type: 'float32', shape: ['N', 3, 'h', 'w'] }
const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`

describe('planDetector', () => {
  it.each([
    ['uint8-nhwc', nhwc],
    ['uint8-nchw', { ...nhwc, shape: ['N', 3, 64, 64] }],
    ['float32-nchw', { ...nhwc, type: 'float32', shape: [1, 3, 64, 64] }],
  ] as const)('recognises a %s picture', (layout, input) => {
    expect(plan([input]).input).toEqual({
      name: 'images',
      layout,
      size: { widthPx: 64, heightPx: 64 },
      channels: 'rgb',
      range: '0-1',
      align: 'center',
    })
  })

  it('takes an open size from the parameter, the configured dims, or the metadata, in this order', () => {
    const metadata = { imgsz: '[64, 64]' }
    const dims = `max_batch_size: 8 input { name: "images" data_type: TYPE_FP32 dims: [ 3, 32, 128 ] }`
    const labels = 'a\nb\n'
    expect(plan([open], { metadata, labels }).input.size).toEqual({ widthPx: 64, heightPx: 64 })
    expect(plan([open], { metadata, labels, config: dims }).input.size).toEqual({
      widthPx: 128,
      heightPx: 32,
    })
    const both = `${dims} ${parameter('gantry.input_size', '96x32')}`
    expect(plan([open], { metadata, labels, config: both }).input.size).toEqual({ widthPx: 96, heightPx: 32 })
    expect(() => plan([open])).toThrow(
      'input "images" float32 [N, 3, h, w] does not tell the size of its picture',
    )
  })

  it('says what decided the size', () => {
    const metadata = { imgsz: '[64, 64]' }
    const labels = 'a\nb\n'
    const dims = `input { name: "images" data_type: TYPE_FP32 dims: [ -1, 3, 32, 128 ] }`
    const set = parameter('gantry.input_size', '96x32')
    expect(plan([nhwc], { labels }).sizeFrom).toBe('the model file')
    expect(plan([open], { labels, config: set }).sizeFrom).toBe('gantry.input_size')
    expect(plan([open], { labels, config: dims }).sizeFrom).toBe('dims of config.pbtxt')
    expect(plan([open], { labels, metadata }).sizeFrom).toBe('imgsz of its metadata')
  })

  describe('for cameras, a model with gantry.input_size "rect"', () => {
    const config = parameter('gantry.input_size', 'rect')
    const shapes = { pictures: [{ widthPx: 1280, heightPx: 720 }], cameras: 1 }
    const metadata = { imgsz: '[64, 64]', stride: '8' }
    const free: TensorSpec = { name: 'output0', type: 'float32', shape: ['N', 6, 'points'] }
    const labels = 'a\nb\n'

    it('takes the shape of their pictures, and keeps that of its export in hand', () => {
      const found = plan([open], { config, metadata, labels, outputs: [free], shapes })
      expect(found).toMatchObject({
        input: { size: { widthPx: 64, heightPx: 40 } },
        sizeFrom: 'the shape of 1 of 1 camera',
        exportedSize: { widthPx: 64, heightPx: 64 },
        notes: [],
      })
      const { exportedSize: _, sizeFrom: __, input, ...others } = found
      const {
        sizeFrom: ___,
        input: square,
        ...same
      } = plan([open], { config, metadata, labels, outputs: [free] })
      expect(others).toEqual(same)
      expect({ ...input, size: square.size }).toEqual(square)
    })

    it('has nothing in hand where that is its shape', () => {
      const square = { pictures: [{ widthPx: 500, heightPx: 500 }], cameras: 1 }
      const found = plan([open], { config, metadata, labels, outputs: [free], shapes: square })
      expect(found.input.size).toEqual({ widthPx: 64, heightPx: 64 })
      expect(found).not.toHaveProperty('exportedSize')
    })

    it('is one that says so: any other is as it was, and told what it could be', () => {
      const asItWas = plan([open], { metadata, labels, outputs: [free], shapes })
      expect(asItWas.input.size).toEqual({ widthPx: 64, heightPx: 64 })
      expect(asItWas.sizeFrom).toBe(
        'imgsz of its metadata; it leaves its size free: gantry.input_size "rect" runs it at 64x40',
      )
      const fixed = parameter('gantry.input_size', '96x32')
      const found = plan([open], { config: fixed, metadata, labels, outputs: [free], shapes })
      expect(found).toMatchObject({
        input: { size: { widthPx: 96, heightPx: 32 } },
        sizeFrom: 'gantry.input_size',
      })
    })

    it.each<[string, readonly TensorSpec[]]>([
      // 84 cells of 64x64, one anchor each, with an objectness: what YOLOX has there, and nobody has at 64x40.
      ['YOLOX', [{ name: 'output0', type: 'float32', shape: ['N', 84, 7] }]],
      // Read as pixels by the rows of 64x64, and as shares of the picture by any other number.
      [
        'YOLO-NAS',
        [
          { name: 'boxes', type: 'float32', shape: ['N', 84, 4] },
          { name: 'scores', type: 'float32', shape: ['N', 84, 2] },
        ],
      ],
    ])('keeps its own where its outputs are those of that size: %s', (_, outputs) => {
      const found = plan([open], { config, metadata, labels, outputs, shapes })
      expect(found.input.size).toEqual({ widthPx: 64, heightPx: 64 })
      expect(found).not.toHaveProperty('exportedSize')
      expect(found.notes).toEqual([
        'model "m": gantry.input_size is "rect", but its outputs are not those of 64x40: it runs at 64x64',
      ])
    })

    it.each<[string, TensorSpec, Record<string, string>, string, string]>([
      ['its file', nhwc, metadata, '', 'its input "images" is uint8 [N, 64, 64, 3]'],
      [
        'its configuration',
        open,
        metadata,
        'input { name: "images" data_type: TYPE_FP32 dims: [ -1, 3, 64, 64 ] }',
        'dims of config.pbtxt say a size',
      ],
      [
        'its exporter',
        open,
        { ...metadata, args: "{'dynamic': False}" },
        '',
        'its metadata says that it was exported for one size',
      ],
    ])('runs at its own size where %s fixes it, and a note says so', (_, input, of, dims, why) => {
      const found = plan([input], { config: `${config} ${dims}`, metadata: of, labels, shapes })
      expect(found.input.size).toEqual({ widthPx: 64, heightPx: 64 })
      expect(found.notes).toEqual([`model "m": gantry.input_size is "rect", but ${why}: it runs at 64x64`])
    })
  })

  it('lets parameters override colours, range and padding', () => {
    const config = [
      parameter('gantry.color', 'bgr'),
      parameter('gantry.range', '0-255'),
      parameter('gantry.letterbox', 'top-left'),
    ].join('\n')
    expect(plan([nhwc], { config }).input).toMatchObject({
      channels: 'bgr',
      range: '0-255',
      align: 'top-left',
    })
  })

  it.each([
    ['gantry.color', 'grey', 'parameter gantry.color is "grey"'],
    ['gantry.range', '-1-1', 'parameter gantry.range is "-1-1"'],
    ['gantry.input_size', 'big', 'gantry.input_size "big" is not WIDTHxHEIGHT'],
    [
      'gantry.input_size',
      '128x128',
      'gantry.input_size is 128x128, but input "images" is uint8 [N, 64, 64, 3]',
    ],
  ])('refuses %s = %s', (key, value, problem) => {
    expect(() => plan([nhwc], { config: parameter(key, value) })).toThrow(problem)
  })

  it.each([
    ['no picture', [{ ...nhwc, shape: ['N', 10] }], 'input "images" uint8 [N, 10] is not an image'],
    ['pixels in int64', [{ ...nhwc, type: 'int64' as const }], 'is a picture in int64'],
    ['pixels in bfloat16', [{ ...nhwc, type: 'bfloat16' as const }], 'is a picture in bfloat16'],
    [
      'two inputs',
      [nhwc, { ...nhwc, name: 'sizes' }],
      'has 2 inputs: "images" uint8 [N, 64, 64, 3], "sizes"',
    ],
    ['batches of a fixed size', [{ ...nhwc, shape: [4, 64, 64, 3] }], 'takes exactly 4 frames in each run'],
  ])('refuses a model with %s', (_, inputs, problem) => {
    expect(() => plan(inputs)).toThrow(problem)
  })

  it('takes names of classes from labels or metadata, and makes them up with a note', () => {
    expect(plan([nhwc], { labels: 'helmet\nhead\n' })).toMatchObject({
      labels: ['helmet', 'head'],
      notes: [],
    })
    expect(plan([nhwc], { metadata: namesMetadata(['a', 'b']) }).labels).toEqual(['a', 'b'])
    expect(plan([nhwc])).toMatchObject({
      labels: ['class_0', 'class_1'],
      notes: [expect.stringContaining('has no labels')],
    })
  })

  it('refuses labels of another number of classes', () => {
    expect(() => plan([nhwc], { labels: 'helmet\nhead\nperson\n' })).toThrow(
      'labels.txt has 3 labels, but output "output0" has 2 classes',
    )
  })

  it('reads which labels exclude each other', () => {
    const outputs: TensorSpec[] = [{ name: 'output0', type: 'float32', shape: ['N', 9, 84] }]
    const labels = 'helmet\nhead\nperson\nvest\nno vest\n'
    const config = parameter('gantry.exclusive_labels', 'head, helmet; vest,no vest')
    expect(plan([nhwc], { outputs, labels, config }).head.exclusive).toEqual([1, 1, 2, 3, 3])
    expect(plan([nhwc], { outputs, labels }).head.exclusive).toBeUndefined()
  })

  it.each([
    ['helmet', 'gantry.exclusive_labels has the group "helmet" of fewer than two labels'],
    ['helmet, head;', 'has the group "" of fewer than two labels'],
    ['helmet, hed', 'names "hed", which is no label of the model'],
    ['helmet, helmet', 'names "helmet" twice'],
  ])('refuses the exclusive labels "%s"', (value, problem) => {
    const config = parameter('gantry.exclusive_labels', value)
    expect(() => plan([nhwc], { labels: 'helmet\nhead\n', config })).toThrow(problem)
  })

  it('refuses exclusive labels of a model without any', () => {
    const config = parameter('gantry.exclusive_labels', 'a, b')
    expect(() => plan([nhwc], { config })).toThrow('is set, but the model has no labels')
  })

  it('takes the sizes an exporter lost from the configuration', () => {
    const outputs: TensorSpec[] = [{ name: 'output0', type: 'float32', shape: ['N', 'a', 'b'] }]
    const config = `max_batch_size: 2
      input { name: "images" data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] }
      output { name: "output0" data_type: TYPE_FP32 dims: [ 6, 84 ] }`
    expect(plan([nhwc], { outputs, config })).toMatchObject({
      head: { kind: 'yolov8', classes: 2 },
      maxBatchSize: 2,
    })
    expect(() => plan([nhwc], { outputs })).toThrow('no output can be read as detections')
  })
})
