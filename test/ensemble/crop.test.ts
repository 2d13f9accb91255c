import { describe, expect, it, onTestFinished } from 'vitest'
import { createEnsembleModel } from '../../src/ensemble/create-ensemble-model.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import type { Tensor, TensorSpec } from '../../src/tensors/tensor.js'
import {
  fp32,
  plainModel,
  requestOf,
  scheduled,
  scheduledModel,
  spec,
  valuesOf,
} from '../support/direct-model.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, detectorOnnx, redDetector, type TestInput } from '../support/onnx-models.js'
import { silentLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'

async function ensembleOf(text: string, models: readonly LoadedModel[], boxInputs: readonly string[] = []) {
  const config = parseModelConfig(`name: "e" platform: "ensemble" ${text}`, 'config.pbtxt')
  const find = (name: string) => models.find((model) => model.name === name)
  const ensemble = await createEnsembleModel(
    { name: 'e', version: '1', config, versionDir: '', labels: new Map(), boxInputs },
    { find, serve: scheduled, log: silentLog() },
  )
  onTestFinished(() => ensemble.stop(5_000))
  return ensemble
}

/** Says how red each crop is, 0..1: `redness` FP32 `[N, 1, 1]`. */
function redness(input: TestInput, maxBatchSize = 4, batch: number | string = 'batch'): Promise<LoadedModel> {
  const repository = tempDir()
  const onnx = detectorOnnx({
    input,
    widthPx: 8,
    heightPx: 6,
    rows: 1,
    columns: 1,
    fixed: { 0: input.startsWith('int8') ? 128 / 255 : 0 },
    signal: { 0: input.startsWith('float') ? 1 : 255 },
    outputName: 'redness',
    batch,
  })
  addModel(repository, 'redness', { onnx, config: `max_batch_size: ${maxBatchSize}` })
  return scheduledModel(repository, 'redness')
}

async function redFinder(): Promise<LoadedModel> {
  const repository = tempDir()
  addModel(repository, 'finder', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  return scheduledModel(repository, 'finder')
}

const output = 'output { name: "redness" data_type: TYPE_FP32 dims: [ -1, 1, 1 ] }'
const rednessStep =
  'step { model_name: "redness" input_map { key: "images" value: "crops" } output_map { key: "redness" value: "redness" } }'
const cropStep = (model = 'crop') => `step { model_name: "${model}"
  input_map { key: "frame" value: "frame" } input_map { key: "geometry" value: "geometry" }
  input_map { key: "detections" value: "detections" } output_map { key: "crops" value: "crops" } }`

const detectThenLook = `
  input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } ${output}
  output { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
  ensemble_scheduling {
    step { model_name: "letterbox" input_map { key: "image" value: "image" }
      output_map { key: "pixels" value: "pixels" } output_map { key: "geometry" value: "geometry" }
      output_map { key: "frame" value: "frame" } }
    step { model_name: "finder" input_map { key: "images" value: "pixels" } output_map { key: "output0" value: "head" } }
    step { model_name: "detection_head" input_map { key: "output0" value: "head" }
      input_map { key: "geometry" value: "geometry" } output_map { key: "detections" value: "detections" } }
    ${cropStep()} ${rednessStep}
  }`

/** Boxes and the picture they are in come from the client. */
const lookAt = (parameters = '', steps = `${cropStep()} ${rednessStep}`, outputs = output) => `
  input { name: "frame" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
  input { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
  ${outputs} ${parameters}
  ensemble_scheduling { ${steps.replaceAll('input_map { key: "geometry" value: "geometry" }', '')} }`
const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`

type Paint = (x: number, y: number) => number
function picture(name: string, widthPx: number, heightPx: number, red: Paint): Tensor {
  const data = new Uint8Array(widthPx * heightPx * 3)
  for (let at = 0; at < data.length; at += 3) data[at] = red((at / 3) % widthPx, Math.floor(at / 3 / widthPx))
  return { name, datatype: 'UINT8', shape: [heightPx, widthPx, 3], data }
}
const boxes = (rows: readonly (readonly number[])[]) =>
  fp32(
    'detections',
    [rows.length, 6],
    rows.flatMap((row) => [...row, 1, 0]),
  )
/** Five stripes, ten pixels wide: 0, 50, ... 200. */
const stripes = picture('frame', 50, 20, (x) => Math.floor(x / 10) * 50)
const stripe = (index: number) => [index * 10 + 1, 2, index * 10 + 9, 18]

describe('a crop step', () => {
  it('cuts boxes out of the frame that the detector saw', async () => {
    const ensemble = await ensembleOf(detectThenLook, [await redFinder(), await redness('float32-nchw')])
    // Half as large in the frame, whose rows 16 to 48 it fills. The box is (44, 0)-(84, 8) of it.
    const inBox = (x: number, y: number) => x >= 44 && x < 84 && y < 8
    const image = picture('image', 128, 64, (x, y) => (inBox(x, y) ? 200 : 255))
    const [seen, detections] = await ensemble.infer(requestOf([image]))
    expect(detections?.shape).toEqual([1, 6])
    expect(seen).toMatchObject({ name: 'redness', shape: [1, 1, 1] })
    // What scaling mixed in at the edges of the box is a part of it.
    expect(valuesOf(seen)[0]).toBeGreaterThan(0.78)
    expect(valuesOf(seen)[0]).toBeLessThan(0.83)
  })

  it('lets nothing run behind it where there is no box: outputs have no rows', async () => {
    const ensemble = await ensembleOf(detectThenLook, [await redFinder(), await redness('float32-nchw')])
    const [seen, detections] = await ensemble.infer(requestOf([picture('image', 64, 64, () => 0)]))
    expect(detections?.shape).toEqual([0, 6])
    expect(seen).toMatchObject({ name: 'redness', datatype: 'FP32', shape: [0, 1, 1] })
    expect(seen?.data.byteLength).toBe(0)
  })

  it.each<TestInput>([
    'uint8-nhwc',
    'uint8-nchw',
    'float32-nchw',
    'float32-nhwc',
    'float16-nchw',
    'int8-nchw',
    'int8-nhwc',
  ])(
    'writes what a %s model takes, from a picture and boxes of the client, in pieces of its max_batch_size',
    async (input) => {
      const ensemble = await ensembleOf(lookAt(), [await redness(input, 2)])
      const [seen] = await ensemble.infer(requestOf([stripes, boxes([4, 1, 0, 3, 2].map(stripe))]))
      expect(seen?.shape).toEqual([5, 1, 1])
      valuesOf(seen).forEach((value, row) => expect(value).toBeCloseTo(([4, 1, 0, 3, 2][row]! * 50) / 255, 2))
    },
  )

  it('gives a model that was exported for one picture one crop at a time', async () => {
    const ensemble = await ensembleOf(lookAt(), [await redness('uint8-nhwc', 0, 1)])
    const [seen] = await ensemble.infer(requestOf([stripes, boxes([stripe(2), stripe(0), stripe(4)])]))
    expect(seen?.shape).toEqual([3, 1, 1])
    expect(valuesOf(seen).map((value) => Math.round(value * 255))).toEqual([100, 0, 200])
  })

  it('gives bytes of gantry.crop_size where no model reads them, with gantry.crop_margin around the box', async () => {
    const plain = 'output { name: "crops" data_type: TYPE_UINT8 dims: [ -1, -1, -1, 3 ] }'
    const parameters = parameter('gantry.crop_size', '30x20') + parameter('gantry.crop_margin', '1')
    const ensemble = await ensembleOf(lookAt(parameters, cropStep(), plain), [])
    const [crops] = await ensemble.infer(requestOf([stripes, boxes([[10, 8, 20, 12]])]))
    expect(crops).toMatchObject({ datatype: 'UINT8', shape: [1, 20, 30, 3] })
    const reds = Array.from({ length: 30 }, (_, x) => crops?.data[x * 3])
    expect(reds).toEqual(Array.from({ length: 30 }, (_, x) => Math.floor(x / 10) * 50))
  })

  it('takes the size of a model that leaves it open from gantry.crop_size, and says where that is missing', async () => {
    const shape = ['batch', 'h', 'w', 3]
    const onnx = buildOnnx({
      inputs: [{ name: 'images', type: 'uint8', shape }],
      outputs: [{ name: 'seen', type: 'uint8', shape }],
      nodes: [{ op: 'Identity', inputs: ['images'], outputs: ['seen'] }],
    })
    const repository = tempDir()
    addModel(repository, 'open', { onnx, config: 'max_batch_size: 4' })
    const open = await scheduledModel(repository, 'open')
    const steps = `${cropStep()} step { model_name: "open" input_map { key: "images" value: "crops" } output_map { key: "seen" value: "seen" } }`
    const seen = 'output { name: "seen" data_type: TYPE_UINT8 dims: [ -1, -1, -1, 3 ] }'
    const ensemble = await ensembleOf(lookAt(parameter('gantry.crop_size', '24x12'), steps, seen), [open])
    const [given] = await ensemble.infer(requestOf([stripes, boxes([stripe(1)])]))
    expect(given?.shape).toEqual([1, 12, 24, 3])
    await expect(ensembleOf(lookAt('', steps, seen), [open])).rejects.toMatchObject({
      hint: expect.stringContaining('gantry.crop_size') as string,
    })
  })

  it.each([
    [
      'a size that the model does not have',
      lookAt(parameter('gantry.crop_size', '16x16')),
      'gantry.crop_size is 16x16, but input "images" is',
    ],
    [
      'a size that is none',
      lookAt(parameter('gantry.crop_size', 'big')),
      'gantry.crop_size "big" is not WIDTHxHEIGHT',
    ],
    ['a margin above 1', lookAt(parameter('gantry.crop_margin', '1.5')), 'gantry.crop_margin is "1.5"'],
    [
      'no model and no size',
      lookAt('', cropStep(), 'output { name: "crops" data_type: TYPE_UINT8 dims: [ -1, -1, -1, 3 ] }'),
      'is a crop without a size',
    ],
    ['several pictures at once', lookAt('max_batch_size: 2'), 'crop takes one picture at a time'],
    [
      'a model that reads no pictures',
      lookAt(
        '',
        `${cropStep()} step { model_name: "vector" input_map { key: "x" value: "crops" } output_map { key: "y" value: "redness" } }`,
      ),
      'input "x" float32 [2] is not an image',
    ],
    [
      'two models that take the crops otherwise',
      lookAt(
        '',
        `${cropStep()} ${rednessStep} step { model_name: "other" input_map { key: "images" value: "crops" } output_map { key: "redness" value: "r" } }`,
      ),
      'step[0] (crop) has its "crops" read by models that take them otherwise',
    ],
  ])('is refused with %s', async (_, text, problem) => {
    const model = (name: string, input: TensorSpec, output: TensorSpec) =>
      plainModel({ name, inputs: [input], outputs: [output], infer: () => Promise.resolve([]) })
    const red = model('redness', spec('images', [-1, 6, 8, 3], 'UINT8'), spec('redness', [-1, 1, 1]))
    const other = model('other', spec('images', [-1, 3, 6, 8]), spec('redness', [-1, 1, 1]))
    const vector = model('vector', spec('x', [2]), spec('y', [2]))
    await expect(ensembleOf(text, [red, vector, other])).rejects.toThrow(problem)
  })

  it.each([
    [
      'boxes of another form',
      [stripes, fp32('detections', [2, 5], Array<number>(10).fill(0))],
      "unexpected shape for input 'detections'",
    ],
    ['more boxes than there is memory for', [stripes, fp32('detections', [2_000_000, 6], [])], 'crop: '],
  ])('answers %s with an error', async (_, inputs, problem) => {
    const ensemble = await ensembleOf(lookAt(), [await redness('float32-nchw')])
    const filled = inputs.map((tensor) =>
      tensor.data.byteLength > 0 ? tensor : { ...tensor, data: new Uint8Array(2_000_000 * 24) },
    )
    await expect(ensemble.infer(requestOf(filled))).rejects.toThrow(problem)
  })
})

describe('steps behind boxes', () => {
  const copies = (over: Partial<LoadedModel>) =>
    plainModel({
      name: 'copies',
      inputs: [spec('rows', [-1, 6]), spec('all', [1])],
      outputs: [spec('row', [-1, 6]), spec('text', [-1], 'BYTES'), spec('total', [1])],
      infer: () => Promise.reject(new Error('must not run')),
      ...over,
    })
  const text = `
    input { name: "frame" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
    input { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
    input { name: "all" data_type: TYPE_FP32 dims: [ 1 ] }
    output { name: "row" data_type: TYPE_FP32 dims: [ -1, 6 ] }
    output { name: "text" data_type: TYPE_STRING dims: [ -1 ] }
    output { name: "total" data_type: TYPE_FP32 dims: [ 1 ] }
    ensemble_scheduling {
      step { model_name: "crop" input_map { key: "frame" value: "frame" } input_map { key: "detections" value: "detections" } output_map { key: "crops" value: "crops" } }
      step { model_name: "boxes" input_map { key: "crops" value: "crops" } output_map { key: "found" value: "found" } }
      step { model_name: "copies" input_map { key: "rows" value: "found" } input_map { key: "all" value: "all" }
        output_map { key: "row" value: "row" } output_map { key: "text" value: "text" } output_map { key: "total" value: "total" } }
    }`
  /** As many rows as there are crops. */
  const found = plainModel({
    name: 'boxes',
    inputs: [spec('crops', [-1, 4, 4, 3], 'UINT8')],
    outputs: [spec('found', [-1, 6])],
    infer: ({ inputs: [crops] }) => {
      const count = crops?.shape[0] ?? 0
      return Promise.resolve([
        fp32(
          'found',
          [count, 6],
          Array.from({ length: count * 6 }, (_, at) => at),
        ),
      ])
    },
  })
  const all = fp32('all', [1], [9])

  it('do not run without boxes, however far behind: a list, and what has another size too, has no rows', async () => {
    const ensemble = await ensembleOf(text, [found, copies({})])
    const answer = await ensemble.infer(requestOf([stripes, boxes([]), all]))
    expect(answer.map(({ name, shape }) => [name, shape])).toEqual([
      ['row', [0, 6]],
      ['text', [0]],
      ['total', [0]],
    ])
  })

  it('do not run either where the detector has run before the ensemble, and its boxes are an input', async () => {
    const steps = `step { model_name: "copies" input_map { key: "rows" value: "detections" } input_map { key: "all" value: "all" }
      output_map { key: "text" value: "text" } }`
    const behind = `
      input { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
      input { name: "all" data_type: TYPE_FP32 dims: [ 1 ] }
      output { name: "text" data_type: TYPE_STRING dims: [ -1 ] }
      ${parameter('gantry.attributes', 'word=text')} ensemble_scheduling { ${steps} }`
    const ensemble = await ensembleOf(behind, [copies({})], ['detections'])
    const [words] = await ensemble.infer(requestOf([boxes([]), all]))
    expect(words).toMatchObject({ name: 'text', shape: [0] })
    expect(ensemble.attributes).toMatchObject([{ name: 'word', output: 'text' }])
    await expect(ensembleOf(behind, [copies({})])).rejects.toThrow('has no row for each box')
  })

  it('run with boxes, and get inputs that have no rows with every piece', async () => {
    const asked: (readonly [readonly number[], number[]])[] = []
    const pieces = copies({
      inputs: [spec('rows', [1, 6]), spec('all', [1])],
      infer: ({ inputs: [rows, whole] }) => {
        asked.push([rows!.shape, valuesOf(whole)])
        const data = Uint8Array.of(1, 0, 0, 0, 65)
        return Promise.resolve([
          { ...rows!, name: 'row' },
          { name: 'text', datatype: 'BYTES', shape: [1], data },
          { ...whole!, name: 'total' },
        ])
      },
    })
    const ensemble = await ensembleOf(text, [found, pieces])
    const [row, words] = await ensemble.infer(requestOf([stripes, boxes([stripe(0), stripe(1)]), all]))
    expect(asked).toEqual([
      [[1, 6], [9]],
      [[1, 6], [9]],
    ])
    expect(valuesOf(row)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(words).toMatchObject({ shape: [2], data: Uint8Array.of(1, 0, 0, 0, 65, 1, 0, 0, 0, 65) })
  })
})
