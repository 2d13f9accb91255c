import { expect, it } from 'vitest'
import { isForClientsAlone } from '../../src/ensemble/clients-alone.js'
import { emptyModelConfig } from '../../src/repository/model-config.js'

type Shape = readonly (number | string)[]

function model(input: Shape, outputs: readonly Shape[], parameters: Readonly<Record<string, string>> = {}) {
  const tensor = (shape: Shape, at: number) => ({ name: `t${at}`, type: 'float32' as const, shape })
  return {
    config: {
      ...emptyModelConfig,
      parameters: Object.fromEntries(
        Object.entries(parameters).map(([key, value]) => [key, { string_value: value }]),
      ),
    },
    onnx: { inputs: [tensor(input, 9)], outputs: outputs.map(tensor) },
  }
}

const picture = [1, 3, 64, 64]
const free = ['?', 3, '?', '?']

it.each<[string, Shape, readonly Shape[]]>([
  ['a classifier', picture, [[1, 1000]]],
  ['a classifier of batches', ['N', 3, 224, 224], [['N', 1000]]],
  ['a classifier whose batch has no name', ['?', 3, 224, 224], [['?', 1000]]],
  ['a classifier that pools to one cell', picture, [[1, 1000, 1, 1]]],
  ['a classifier with an embedding beside', picture, [[1, 4], [1, 512], [1]]],
  ['segmentation', ['N', 3, 'h', 'w'], [['N', 21, 'h', 'w']]],
  ['segmentation in another layout', ['N', 128, 128, 3], [['N', 128, 128, 21]]],
  ['depth', picture, [[1, 64, 64]]],
  ['a model of texts', ['N', 'tokens'], [['N', 'tokens', 768]]],
  ['a model of sums', [-1, 16], [[-1, 16]]],
])('%s was made for API clients', (_, input, outputs) => {
  expect(isForClientsAlone(model(input, outputs))).toBe(true)
})

it.each<[string, Shape, readonly Shape[]]>([
  ['boxes of a kind that nobody knows', picture, [[1, 77, 40]]],
  [
    'scores and distances that cannot be told apart',
    picture,
    [
      [1, 84, 32],
      [1, 84, 32],
    ],
  ],
  ['boxes beside scores and labels, without a batch', [1, 3, 64, 64], [[100, 4], [100], [100]]],
  ['boxes of any number beside scores', free, [['?', 4], ['?'], ['?']]],
  ['rows of six of any number', free, [['?', 6]]],
  ['grids of any size', free, [['?', 85, '?', '?']]],
  ['grids', picture, [[1, 7, 8, 8]]],
  ['a picture of one colour', [1, 1, 64, 64], [[1, 84, 6]]],
  ['a picture without a batch', [3, 64, 64], [[84, 6]]],
])('%s may be for cameras', (_, input, outputs) => {
  expect(isForClientsAlone(model(input, outputs))).toBe(false)
})

it('takes a model for cameras whose configuration speaks of a head', () => {
  expect(isForClientsAlone(model(picture, [[1, 1000]], { 'gantry.head': 'yolov8' }))).toBe(false)
})
