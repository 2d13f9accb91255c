import { expect, it } from 'vitest'
import { checkModel } from '../../src/cli/checks/model-check.js'
import { checkCameraModel } from '../../src/ensemble/check-camera-model.js'
import { type GantryError } from '../../src/errors.js'
import { inspectModel } from '../../src/tools/model-catalog.js'
import { startDetector } from '../support/detector-rig.js'
import { parametersText } from '../support/ensemble-text.js'
import { addModel, constantOnnx } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const picture = { name: 'input.1', type: 'float32', shape: [1, 3, 64, 64] } as const

/** A model with outputs of these shapes, under numbers for names. */
function repositoryWith(
  shapes: readonly (readonly number[])[],
  config: Readonly<Record<string, string>> = {},
) {
  const repository = tempDir()
  const constants = shapes.map((shape, at) => ({
    name: String(at + 1),
    shape,
    data: new Float32Array(shape.reduce((product, size) => product * size, 1)),
  }))
  addModel(repository, 'm', { onnx: constantOnnx([picture], constants), config: parametersText(config) })
  return repository
}

const pairs = (classes: number, bins: number) =>
  [64, 16, 4].flatMap((cells) => [
    [1, cells, classes],
    [1, cells, bins],
  ])

it.each([
  ['32 classes and as many distances', pairs(32, 32), {}, 'GANTRY_HEAD_UNKNOWN', 'Set gantry.head_outputs'],
  ['32 or 44 classes', pairs(32, 44), {}, 'GANTRY_HEAD_UNKNOWN', 'set gantry.head_classes to "32" or "44"'],
  ['NanoDet or YOLOX', [[1, 85, 40]], {}, 'GANTRY_HEAD_UNKNOWN', 'set gantry.head to "nanodet" or "yolox"'],
  ['outputs that nobody knows', [[1, 77, 40]], {}, 'GANTRY_HEAD_UNKNOWN', 'gantry.head'],
  [
    'outputs that are set, and cells of no usual stride',
    [
      [1, 256, 2],
      [1, 256, 32],
    ],
    { 'gantry.head': 'nanodet', 'gantry.head_outputs': '1,2' },
    'GANTRY_HEAD_UNKNOWN',
    'Set gantry.head_strides',
  ],
  [
    'strides that the outputs do not have',
    pairs(2, 32),
    { 'gantry.head': 'nanodet', 'gantry.head_outputs': '1,2,3,4,5,6', 'gantry.head_strides': '4,8,16' },
    'GANTRY_HEAD_UNKNOWN',
    'gantry.head_strides',
  ],
  [
    'a kind whose outputs have other shapes',
    [[1, 83, 7]],
    { 'gantry.head': 'yolox', 'gantry.head_strides': '8' },
    'GANTRY_HEAD_UNKNOWN',
    'gantry.head',
  ],
  [
    'raw grids without anchors',
    [
      [1, 7, 8, 8],
      [1, 7, 4, 4],
    ],
    { 'gantry.head': 'grid', 'gantry.head_outputs': '1,2' },
    'GANTRY_TENSOR_SHAPE',
    'gantry.head',
  ],
  ['a threshold that is none', [[1, 6, 84]], { 'gantry.score_threshold': '30' }, 'GANTRY_MODEL_CONFIG', ''],
  [
    'a softmax of one number',
    [[1, 50, 6]],
    { 'gantry.head': 'end-to-end', 'gantry.head_activation': 'softmax' },
    'GANTRY_HEAD_UNKNOWN',
    'Set it to "none" or "sigmoid"',
  ],
])('R67: inspect, check and the start say the same of %s', async (_, shapes, config, code, fix) => {
  const repository = repositoryWith(shapes, config)
  const load = startDetector({ repositoryDir: repository, ensemble: 'm', inference: { instances: 1 } })
  const error = await load.then(
    () => undefined,
    (thrown: unknown) => thrown as GantryError,
  )
  expect(error).toMatchObject({ code, hint: expect.stringContaining(fix) as string })
  const { message, hint } = error!
  expect(inspectModel(repository, 'm').detectorError).toMatchObject({ code, message, hint })
  expect(checkModel([repository], 'm', [], false)[0]).toMatchObject({
    state: 'failed',
    detail: message,
    fix: hint,
  })
  expect(() => checkCameraModel([repository], 'm')).toThrow(message)
})

it('R66: names that are not understood are told by inspect, check and the log, and never passed over', async () => {
  const repository = tempDir()
  const data = new Float32Array(6 * 84)
  const onnx = constantOnnx([picture], [{ name: '1', shape: [1, 6, 84], data }], [], [], {
    names: "{0: 'helmet', 1: 'head'",
  })
  addModel(repository, 'm', { onnx })
  const problem = 'class names in its metadata are not understood'
  const isTold = expect.stringContaining(problem) as string
  expect(inspectModel(repository, 'm').warnings).toContainEqual(isTold)
  expect(inspectModel(repository, 'm').warnings).toContainEqual(expect.stringContaining('has no labels'))
  expect(checkModel([repository], 'm', [], false)).toContainEqual(
    expect.objectContaining({ state: 'warning', detail: isTold }),
  )
  const rig = await startDetector({ repositoryDir: repository, ensemble: 'm', inference: { instances: 1 } })
  expect(rig.logLines).toContainEqual(expect.objectContaining({ level: 40, msg: isTold }))
})

it('R66: a name that two classes have is told', () => {
  const repository = tempDir()
  const data = new Float32Array(7 * 84)
  addModel(repository, 'm', {
    onnx: constantOnnx([picture], [{ name: '1', shape: [1, 7, 84], data }]),
    labels: 'helmet\nhead\nhelmet\n',
  })
  expect(inspectModel(repository, 'm').warnings).toEqual([
    'model "m" has labels that are given twice: helmet; their classes cannot be told apart',
  ])
})
