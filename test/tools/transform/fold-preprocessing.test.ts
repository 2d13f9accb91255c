import { describe, expect, it } from 'vitest'
import type { InputPlan } from '../../../src/detector/input-tensor.js'
import { foldPreprocessing } from '../../../src/tools/transform/fold-preprocessing.js'
import { buildOnnx, type Constant, type Node, type OnnxSpec } from '../../support/onnx-builder.js'
import { answersOf, modelFile, noise } from '../../support/transformed.js'

const size = { widthPx: 16, heightPx: 8 }
const usual: InputPlan = {
  name: 'images',
  layout: 'float32-nchw',
  size,
  channels: 'rgb',
  range: '0-1',
  align: 'center',
}
const imagenet = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] }

const weights = (name: string, shape: readonly number[]): Constant => ({
  name,
  shape,
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, at) => Math.sin(at * 7.3 + 1)),
})
const conv = (input: string, output: string, weight: string, attributes = {}): Node => ({
  op: 'Conv',
  inputs: [input, weight, 'bias'],
  outputs: [output],
  attributes,
})

/** A model of those nodes, whose last one gives `out`. */
function model(nodes: readonly Node[], constants: readonly Constant[], more: Partial<OnnxSpec> = {}): string {
  return modelFile(
    buildOnnx({
      inputs: [{ name: 'images', type: 'float32', shape: ['batch', 3, 8, 16] }],
      outputs: [{ name: 'out', type: 'float32', shape: ['batch', 'channels', 'height', 'width'] }],
      nodes,
      constants,
      ...more,
    }),
  )
}

const plain = (attributes = {}) =>
  model([conv('images', 'out', 'w', attributes)], [weights('w', [4, 3, 3, 3]), weights('bias', [4])])

/** As YOLOX begins: every second pixel, in four parts. */
function focus(): string {
  const whole = (name: string, ...numbers: number[]): Constant => ({
    name,
    shape: [numbers.length],
    data: BigInt64Array.from(numbers, BigInt),
  })
  const corners = [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const
  const nodes = corners.map(([row, column], at): Node => ({
    op: 'Slice',
    inputs: ['images', `from${row}${column}`, 'end', 'axes', 'steps'],
    outputs: [`part${at}`],
  }))
  return model(
    [
      ...nodes,
      {
        op: 'Concat',
        inputs: ['part0', 'part1', 'part2', 'part3'],
        outputs: ['joined'],
        attributes: { axis: 1 },
      },
      conv('joined', 'out', 'w', { pads: [1, 1, 1, 1] }),
    ],
    [
      ...corners.map(([row, column]) => whole(`from${row}${column}`, row, column)),
      whole('end', 1000, 1000),
      whole('axes', 2, 3),
      whole('steps', 2, 2),
      weights('w', [4, 12, 3, 3]),
      weights('bias', [4]),
    ],
  )
}

const tensorOf = (plan: InputPlan) => ({
  name: 'images',
  type: 'float32' as const,
  shape: plan.layout === 'float32-nhwc' ? ['batch', 8, 16, 3] : ['batch', 3, 8, 16],
})

/** Largest difference between a model on the float tensor and the folded one on bytes. */
async function apart(path: string, plan: InputPlan): Promise<number> {
  const folded = foldPreprocessing(path, plan, tensorOf(plan))
  const pictures = [noise(size, 1), noise(size, 2)]
  const before = await answersOf(path, plan, pictures)
  const after = await answersOf(folded, { ...usual, layout: 'uint8-nhwc' }, pictures)
  expect(after.out!.dims).toEqual(before.out!.dims)
  return before.out!.values.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - after.out!.values[at]!)),
    0,
  )
}

describe('a picture of bytes in place of the float tensor', () => {
  it.each([
    ['0..1', usual],
    ['0..255', { ...usual, range: '0-255' as const }],
    ['a mean and deviation of each channel', { ...usual, normalise: imagenet }],
    ['BGR', { ...usual, channels: 'bgr' as const, normalise: imagenet }],
  ])('gives the same for %s', async (_, plan) => {
    expect(await apart(plain(), plan)).toBeLessThan(1e-3)
    expect(await apart(plain({ pads: [1, 1, 1, 1], strides: [2, 2] }), plan)).toBeLessThan(1e-3)
    expect(await apart(focus(), plan)).toBeLessThan(1e-3)
  })

  it('turns channels round before a convolution that reads each by itself', async () => {
    const path = model(
      [conv('images', 'out', 'w', { group: 3 })],
      [weights('w', [6, 1, 3, 3]), weights('bias', [6])],
    )
    expect(await apart(path, { ...usual, channels: 'bgr', normalise: imagenet })).toBeLessThan(1e-3)
  })

  it('goes through a transposition of interleaved floats', async () => {
    const path = model(
      [
        { op: 'Transpose', inputs: ['images'], outputs: ['planes'], attributes: { perm: [0, 3, 1, 2] } },
        conv('planes', 'out', 'w', { pads: [1, 1, 1, 1] }),
      ],
      [weights('w', [4, 3, 3, 3]), weights('bias', [4])],
      { inputs: [{ name: 'images', type: 'float32', shape: ['batch', 8, 16, 3] }] },
    )
    const plan: InputPlan = { ...usual, layout: 'float32-nhwc', channels: 'bgr', normalise: imagenet }
    expect(await apart(path, plan)).toBeLessThan(1e-3)
  })

  it('reads no mean where nothing pads the picture', () => {
    const bytes = (pads?: object) =>
      Buffer.from(
        foldPreprocessing(plain(pads), { ...usual, normalise: imagenet }, tensorOf(usual)),
      ).toString('latin1')
    expect(bytes()).not.toContain('gantry_picture/mean')
    expect(bytes({ pads: [1, 1, 1, 1] })).toContain('gantry_picture/mean')
  })
})

describe('a model that preprocessing cannot be folded into', () => {
  const fold =
    (path: string, plan = usual) =>
    () =>
      foldPreprocessing(path, plan, tensorOf(plan))
  const constants = [weights('w', [4, 3, 3, 3]), weights('bias', [4]), weights('three', [1, 3, 1, 1])]

  it('is told by the node that does more than a factor can go through', () => {
    const path = model(
      [{ op: 'Add', inputs: ['images', 'three'], outputs: ['moved'] }, conv('moved', 'out', 'w')],
      constants,
    )
    expect(fold(path)).toThrow(/node "Add_0" \(Add\) does with the picture what a factor/)
  })

  it('is told where there is no convolution, and where it takes bytes already', () => {
    const path = model([{ op: 'Relu', inputs: ['images'], outputs: ['out'] }], [])
    expect(fold(path)).toThrow('no convolution reads the picture')
    expect(fold(plain(), { ...usual, layout: 'uint8-nhwc' })).toThrow('takes bytes already')
  })

  it('is told by the node that is on integers, and by weights that lie outside', () => {
    const quantised = model(
      [
        { op: 'DynamicQuantizeLinear', inputs: ['images'], outputs: ['q', 's', 'z'] },
        { op: 'DequantizeLinear', inputs: ['q', 's', 'z'], outputs: ['again'] },
        conv('again', 'out', 'w'),
      ],
      constants,
    )
    expect(fold(quantised)).toThrow(/quantised already, node "DynamicQuantizeLinear_0"/)
    const outside = model(
      [conv('images', 'out', 'w')],
      [{ ...weights('w', [4, 3, 3, 3]), location: 'w.bin' }, weights('bias', [4])],
    )
    expect(fold(outside)).toThrow('weight "w" lies in a file beside the model: w.bin')
  })
})
