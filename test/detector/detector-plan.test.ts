import { describe, expect, it } from 'vitest'
import { planDetector } from '../../src/detector/detector-plan.js'
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
  } = {},
) {
  const { outputs = [output], metadata, ...files } = options
  const repository = tempDir()
  const onnx = buildOnnx({ inputs, outputs, nodes: [], ...(metadata === undefined ? {} : { metadata }) })
  addModel(repository, 'm', { onnx, ...files })
  return planDetector(openOnnxModel(readModel(repository, 'm')))
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
    ['half floats for pixels', [{ ...nhwc, type: 'int64' as const }], 'is not an image'],
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
