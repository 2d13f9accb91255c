import { describe, expect, it } from 'vitest'
import { attributesOf, planAttributes, type AttributePlan } from '../../src/ensemble/attributes.js'
import { emptyModelConfig } from '../../src/repository/model-config.js'
import { packStrings } from '../../src/tensors/elements.js'
import type { Tensor, TensorSpec } from '../../src/tensors/tensor.js'
import { fp32, spec } from '../support/direct-model.js'

const colours = ['white', 'yellow', 'N/A']
const labels: Readonly<Record<string, readonly string[]>> = { colour: colours, few: ['a'] }

/** What an ensemble says whose outputs have a row for each box, but for `other`. */
function plan(
  attributes: string,
  more: Readonly<Record<string, string>> = {},
  outputs: readonly TensorSpec[] = [
    spec('colour', [-1, 3]),
    spec('half', [-1, 2], 'FP16'),
    spec('size', [-1], 'BYTES'),
    spec('few', [-1, 3]),
    spec('open', [-1, -1]),
    spec('other', [-1, 3]),
    spec('one', [-1, 1]),
    spec('deep', [-1, 1, 3]),
    spec('whole', [-1, 3], 'INT64'),
    spec('pair', [-1, 2], 'BYTES'),
    spec('fixed', [4, 3]),
  ],
): AttributePlan {
  const given = { ...(attributes === '' ? {} : { 'gantry.attributes': attributes }), ...more }
  const parameters = Object.fromEntries(
    Object.entries(given).map(([key, string_value]) => [key, { string_value }]),
  )
  const boxRows = new Set(outputs.map(({ name }) => name).filter((name) => name !== 'other'))
  return planAttributes(
    'site',
    { ...emptyModelConfig, parameters },
    { outputs, boxRows },
    (output) => labels[output] ?? [],
  )
}

const texts = (name: string, values: readonly string[]): Tensor => ({
  name,
  datatype: 'BYTES',
  shape: [values.length],
  data: packStrings(values.map((value) => Buffer.from(value))),
})

/** Attributes of boxes with these labels, and what could not be read. */
function read(attributes: AttributePlan, tensors: readonly Tensor[], boxes: readonly string[]) {
  const problems: string[] = []
  const found = attributesOf(
    attributes,
    tensors,
    boxes.map((label) => ({ label })),
    ({ name }, problem) => problems.push(`${name} ${problem}`),
  )
  return { found, problems }
}

describe('attributes of detections', () => {
  it('are the label of the highest score, and texts', () => {
    const { found, problems } = read(
      plan('helmet_colour=colour, size=size'),
      [fp32('colour', [2, 3], [0.1, 0.93456, 0, 0.5, 0.2, 0.3]), texts('size', ['small', 'groß'])],
      ['helmet', 'helmet'],
    )
    expect(found).toEqual([
      [
        { name: 'helmet_colour', value: 'yellow', score: 0.9346 },
        { name: 'size', value: 'small' },
      ],
      [
        { name: 'helmet_colour', value: 'white', score: 0.5 },
        { name: 'size', value: 'groß' },
      ],
    ])
    expect(problems).toEqual([])
  })

  it('are numbers without labels, also from float16 at an odd place', () => {
    const data = new Uint8Array(5).subarray(1)
    data.set([0x00, 0x34, 0x00, 0x38])
    const half: Tensor = { name: 'half', datatype: 'FP16', shape: [1, 2], data }
    expect(read(plan('posture=half'), [half], ['person']).found).toEqual([
      [{ name: 'posture', value: '1', score: 0.5 }],
    ])
  })

  it('are left out for an empty text, a label that stands for nothing, and detections of other labels', () => {
    const attributes = plan('helmet_colour=colour, size=size', {
      'gantry.attribute_labels': 'helmet_colour = helmet , head; size=person',
    })
    const { found } = read(
      attributes,
      [fp32('colour', [3, 3], [1, 0, 0, 0, 0, 1, 1, 0, 0]), texts('size', ['a', 'b', ''])],
      ['person', 'head', 'helmet'],
    )
    expect(found).toEqual([
      [{ name: 'size', value: 'a' }],
      [],
      [{ name: 'helmet_colour', value: 'white', score: 1 }],
    ])
  })

  it.each([
    ['softmax', 1 / (1 + 2 * Math.exp(-2))],
    ['sigmoid', 1 / (1 + Math.exp(-3))],
  ])('have a score of 0..1 out of logits with %s', (activation, score) => {
    const attributes = plan('helmet_colour=colour', { 'gantry.attribute_activation': activation })
    const { found } = read(attributes, [fp32('colour', [1, 3], [1, 3, 1])], ['helmet'])
    expect(found[0]?.[0]?.score).toBeCloseTo(score, 4)
  })

  it('have an activation each, where there are several', () => {
    const attributes = plan('a=colour, b=open', { 'gantry.attribute_activation': 'none, softmax' })
    expect(attributes.map(({ activation }) => activation)).toEqual(['none', 'softmax'])
  })

  it.each<[string, Tensor, string]>([
    ['logits', fp32('colour', [1, 3], [1, 3, 1]), 'has the score 3, which is not in 0..1'],
    ['numbers that are none', fp32('colour', [1, 3], [NaN, NaN, NaN]), 'has the score NaN'],
    ['another number of rows', fp32('colour', [2, 3], [1, 0, 0, 1, 0, 0]), 'has 2 rows for 1 boxes'],
    ['a text without end', { ...texts('colour', ['x'.repeat(257)]) }, 'has a text of 257 characters'],
  ])('are lost with %s, and no others', (_, tensor, problem) => {
    const { found, problems } = read(
      plan('helmet_colour=colour, size=size'),
      [tensor, texts('size', ['small'])],
      ['helmet'],
    )
    expect(found).toEqual([[{ name: 'size', value: 'small' }]])
    expect(problems).toEqual([expect.stringContaining(`helmet_colour ${problem}`)])
  })

  it('are lost in silence where a step gave nothing', () => {
    expect(read(plan('helmet_colour=colour'), [], ['helmet'])).toEqual({ found: [[]], problems: [] })
  })

  it('are none without a parameter', () => {
    expect(plan('')).toEqual([])
  })

  it.each<[string, string, Readonly<Record<string, string>>, string]>([
    ['no output', 'a=nothing', {}, 'output "nothing" of attribute "a" is none of the ensemble'],
    [
      'an output without a row for each box',
      'a=other',
      {},
      'output "other" of attribute "a" has no row for each box',
    ],
    [
      'one value',
      'a=one',
      {},
      'output "one" of attribute "a" is FP32 [-1, 1]: of one value there is no highest',
    ],
    ['three dimensions', 'a=deep', {}, 'is FP32 [-1, 1, 3]'],
    ['whole numbers', 'a=whole', {}, 'is INT64 [-1, 3]'],
    ['several texts a box', 'a=pair', {}, 'is BYTES [-1, 2]'],
    ['a fixed number of rows', 'a=fixed', {}, 'is FP32 [4, 3]'],
    ['another number of labels', 'a=few', {}, 'has 3 values, but 1 labels'],
    ['no name', 'colour', {}, 'parameter gantry.attributes is "colour"'],
    [
      'a name with a space',
      'helmet colour=colour',
      {},
      'parameter gantry.attributes is "helmet colour=colour"',
    ],
    ['a name twice', 'a=colour,a=size', {}, 'parameter gantry.attributes has "a" twice'],
    [
      'labels of nothing',
      'a=colour',
      { 'gantry.attribute_labels': 'b=helmet' },
      'gantry.attribute_labels names "b"',
    ],
    [
      'labels without an attribute',
      'a=colour',
      { 'gantry.attribute_labels': 'helmet' },
      'parameter gantry.attribute_labels is "helmet"',
    ],
    [
      'an activation that is none',
      'a=colour',
      { 'gantry.attribute_activation': 'tanh' },
      'gantry.attribute_activation is "tanh" for 1 attributes',
    ],
    [
      'two activations',
      'a=colour',
      { 'gantry.attribute_activation': 'none,none' },
      'is "none,none" for 1 attributes',
    ],
    ['an activation of nothing', '', { 'gantry.attribute_activation': 'none' }, 'is "none" for 0 attributes'],
    [
      'an activation of text',
      'a=size',
      { 'gantry.attribute_activation': 'softmax' },
      'is text, but has gantry.attribute_activation "softmax"',
    ],
  ])('are refused with %s', (_, attributes, more, problem) => {
    expect(() => plan(attributes, more)).toThrow(problem)
  })
})
