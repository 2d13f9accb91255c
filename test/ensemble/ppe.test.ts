import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { cameraDetectorOf } from '../support/camera-detector-of.js'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { createEnsembleModel } from '../../src/ensemble/create-ensemble-model.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import { clipFrame } from '../support/clip-frame.js'
import { startDetector } from '../support/detector-rig.js'
import { requestOf, scheduled, scheduledModel, valuesOf } from '../support/direct-model.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, detectorOnnx, namesMetadata, redDetector, type TestInput } from '../support/onnx-models.js'
import { silentLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'

const models = fileURLToPath(new URL('../../models', import.meta.url))
const yard = fileURLToPath(new URL('../../pipelines/demo/clips/yard.mp4', import.meta.url))
const ppe = readFileSync(`${models}/ppe/config.pbtxt`, 'utf8')

async function ensembleOf(text: string, detector: LoadedModel) {
  const ensemble = await createEnsembleModel(
    {
      name: 'site',
      version: '1',
      config: parseModelConfig(text, 'config.pbtxt'),
      versionDir: '',
      labels: new Map(),
    },
    {
      find: (name) => (name === detector.name ? detector : undefined),
      serve: scheduled,
      log: silentLog(),
    },
  )
  onTestFinished(() => ensemble.stop(5_000))
  return ensemble
}

const picture = (widthPx: number, heightPx: number, data: Uint8Array) =>
  requestOf([{ name: 'image', datatype: 'UINT8', shape: [heightPx, widthPx, 3], data }])

it('the ppe ensemble finds in a picture what the camera path finds in it', async () => {
  const ensemble = await ensembleOf(ppe, await scheduledModel(models, 'ppe_detect_video'))
  const rig = await startDetector({ repositoryDir: models, ensemble: 'ppe', inference: { instances: 1 } })
  const size = rig.detector.info.format.input
  const rgbHwc = clipFrame(yard, 30, { widthPx: 1280, heightPx: 720 }, rig.detector.info.format)
  const [detections] = await ensemble.infer(
    picture(size.widthPx, size.heightPx, new Uint8Array(rgbHwc.slice(0))),
  )
  const { result } = await rig.detect({ ...rig.frame('yard', 1), rgbHwc })

  const labels = ensemble.labels('detections')
  expect(labels).toEqual(rig.detector.info.labels)
  expect(detections).toMatchObject({ name: 'detections', datatype: 'FP32' })
  const found = rowsOf(valuesOf(detections)).map(([x1, y1, x2, y2, score, classId = -1]) => ({
    label: labels[classId],
    score,
    boxPx: { x1, y1, x2, y2 },
  }))
  expect(found.length).toBeGreaterThan(0)
  expect(found).toEqual(result?.detections)
})

it.each<TestInput>([
  'uint8-nhwc',
  'uint8-nchw',
  'float32-nchw',
  'float32-nhwc',
  'float16-nhwc',
  'float64-nchw',
  'int8-nchw',
  'int8-nhwc',
])('letterbox, a %s detector and detection head give boxes in pixels of the picture', async (input) => {
  const repository = tempDir()
  addModel(repository, 'ppe_detect_video', {
    onnx: redDetector(input),
    labels: 'blue\nred',
    config:
      'max_batch_size: 4 output { name: "output0" data_type: TYPE_FP32 dims: [ 6, 84 ] label_filename: "labels.txt" }',
  })
  const ensemble = await ensembleOf(ppe, await scheduledModel(repository, 'ppe_detect_video'))
  const red = new Uint8Array(128 * 64 * 3)
  for (let at = 0; at < red.length; at += 3) red[at] = 255
  const [detections] = await ensemble.infer(picture(128, 64, red))
  expect(detections?.shape).toEqual([1, 6])
  const [x1, y1, x2, y2, score, classId] = valuesOf(detections)
  // The box of the model is (22, 12)-(42, 20) of 64x64; the picture fills rows 16 to 48 of it at half size.
  expect([x1, y1, x2, y2, classId]).toEqual([44, 0, 84, 8, 1])
  // Half of the input is red, half is the grey of the padding.
  expect(score).toBeCloseTo((1 + 114 / 255) / 2, 2)
  expect(ensemble.labels('detections')).toEqual(['blue', 'red'])
  expect(ensemble.statistics()).toMatchObject({
    inferenceCount: 1,
    executionCount: 1,
    inference: { success: { count: 1 }, queue: { count: 1 }, compute_infer: { count: 1 } },
  })
})

const anchors = 84
/** A box in a 64x64 picture whose score is the mean red of an int8 input; every number is stored in units of `unit`. */
const boxDetector = (input: TestInput, outputType: 'float16' | 'int8', unit: number) =>
  detectorOnnx({
    input,
    outputType,
    widthPx: 64,
    heightPx: 64,
    rows: 6,
    columns: anchors,
    fixed: {
      0: 32 / unit,
      [anchors]: 16 / unit,
      [2 * anchors]: 20 / unit,
      [3 * anchors]: 8 / unit,
      [5 * anchors]: input.startsWith('int8') ? (128 / 255 + 0.1) / unit : 0,
    },
    signal: { [5 * anchors]: (input.startsWith('float') ? 1 : 255) * unit },
    metadata: namesMetadata(['blue', 'red']),
  })
const scale = `parameters { key: "gantry.head_scale" value { string_value: "0.5" } }
  parameters { key: "gantry.head_zero_point" value { string_value: "0" } }`

it.each([
  ['float16 values', boxDetector('float32-nhwc', 'float16', 1), ''],
  ['float16 values from float16 pixels', boxDetector('float16-nchw', 'float16', 1), ''],
  ['float16 values from float64 pixels', boxDetector('float64-nhwc', 'float16', 1), ''],
  ['int8 values from int8 pixels', boxDetector('int8-nchw', 'int8', 0.5), scale],
])('a detector that gives %s has its boxes found', async (_, onnx, parameters) => {
  const repository = tempDir()
  addModel(repository, 'ppe_detect_video', { onnx, config: `max_batch_size: 4 ${parameters}` })
  const ensemble = await ensembleOf(ppe, await scheduledModel(repository, 'ppe_detect_video'))
  const [detections] = await ensemble.infer(picture(64, 64, new Uint8Array(64 * 64 * 3).fill(255)))
  expect(valuesOf(detections)).toEqual([22, 12, 42, 20, 1, 1])
  expect(ensemble.labels('detections')).toEqual(['blue', 'red'])
})

it('R67: boxes whose score is none are left out for API clients too', async () => {
  const repository = tempDir()
  const onnx = detectorOnnx({
    input: 'float32-nchw',
    widthPx: 64,
    heightPx: 64,
    rows: 6,
    columns: anchors,
    // A box of class 0 with a logit, and one of class 1 with a score.
    fixed: Object.fromEntries([
      ...[32, 16, 20, 8, 4.5].map((value, row) => [row * anchors, value] as const),
      ...[32, 48, 20, 8, 0, 0.875].map((value, row) => [row * anchors + 1, value] as const),
    ]),
    metadata: namesMetadata(['blue', 'red']),
  })
  addModel(repository, 'ppe_detect_video', { onnx, config: 'max_batch_size: 4' })
  const ensemble = await ensembleOf(ppe, await scheduledModel(repository, 'ppe_detect_video'))
  const [detections] = await ensemble.infer(picture(64, 64, new Uint8Array(64 * 64 * 3)))
  expect(valuesOf(detections)).toEqual([22, 44, 42, 52, 0.875, 1])
})

it('R66: a detector that takes pixels of another type is refused by name', async () => {
  const repository = tempDir()
  const shape = ['batch', 3, 64, 64]
  const onnx = buildOnnx({
    inputs: [{ name: 'images', type: 'int32', shape }],
    outputs: [{ name: 'output0', type: 'int32', shape }],
    nodes: [{ op: 'Identity', inputs: ['images'], outputs: ['output0'] }],
  })
  addModel(repository, 'ppe_detect_video', { onnx, config: 'max_batch_size: 4' })
  const detector = await scheduledModel(repository, 'ppe_detect_video')
  await expect(ensembleOf(ppe, detector)).rejects.toThrow(
    /"ppe_detect_video": input "images" is a picture in int32, which cameras do not write; expected an image: float32, float16/,
  )
})

it('cameras and the model server read the ensemble of the repository alike', () => {
  expect(cameraDetectorOf(models, 'ppe').name).toBe('ppe_detect_video')
})

function rowsOf(values: readonly number[]): number[][] {
  return Array.from({ length: values.length / 6 }, (_, row) => values.slice(row * 6, row * 6 + 6))
}
