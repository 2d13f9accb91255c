import { describe, expect, it } from 'vitest'
import { datatypes, type Datatype } from '../../../src/tensors/element-type.js'
import { elementsOf, floatsOf, stringsOf } from '../../../src/tensors/elements.js'
import { checkTensor } from '../../../src/tensors/tensor-check.js'
import { seededRandom } from '../../../src/tools/perf/arrivals.js'
import { seededTensor, shapedInputs, shapeOption, zeroTensor } from '../../../src/tools/perf/input-data.js'

const model = (shape: readonly number[], datatype: Datatype = 'FP32') => ({
  name: 'm',
  versions: ['1'],
  platform: '',
  inputs: [
    { name: 'in', datatype, shape },
    { name: 'more', datatype, shape, optional: true },
  ],
  outputs: [],
})
const settings = (batchSize = 1, shapes: readonly (readonly [string, readonly number[]])[] = []) => ({
  batchSize,
  shapes: new Map(shapes),
})
const batched = { maxBatchSize: 8, steps: [] }
const plain = { maxBatchSize: 0, steps: [] }

describe('shapes of inputs', () => {
  it.each([
    ['a batch', [-1, 3], batched, settings(4), [4, 3]],
    ['no batch', [3], plain, settings(), [3]],
    ['free sizes that are named', [-1, -1, 3], batched, settings(2, [['in', [7, 3]]]), [2, 7, 3]],
    [
      'free sizes of a model without a batch',
      [-1, -1, 3],
      plain,
      settings(1, [['in', [5, 7, 3]]]),
      [5, 7, 3],
    ],
    ['a server without configurations', [-1, 3], undefined, settings(4), [4, 3]],
    ['a batch that is named there', [-1, 3], undefined, settings(1, [['in', [3]]]), [1, 3]],
  ])('follow from %s', (_, shape, config, given, expected) => {
    expect(shapedInputs(model(shape), config, given)).toEqual([
      { name: 'in', datatype: 'FP32', shape: expected },
    ])
  })

  it.each([
    ['a free size that nobody named', [-1, -1, 3], batched, settings(), '--shape in:N,3'],
    [
      'a size that is not free',
      [-1, -1, 3],
      batched,
      settings(1, [['in', [7, 4]]]),
      'only those that are -1',
    ],
    ['too few sizes', [-1, -1, 3], batched, settings(1, [['in', [7]]]), 'only those that are -1'],
    [
      'an input that is not there',
      [-1, 3],
      batched,
      settings(1, [['other', [3]]]),
      'Its inputs are in, more',
    ],
    ['too large a batch', [-1, 3], batched, settings(9), 'max_batch_size'],
    ['a batch of a model that takes none', [3], plain, settings(2), 'max_batch_size'],
  ])('refuse %s', (_, shape, config, given, hint) => {
    expect(() => shapedInputs(model(shape), config, given)).toThrow(
      expect.objectContaining({
        code: 'GANTRY_USAGE',
        hint: expect.stringContaining(hint) as string,
      }) as Error,
    )
  })

  it('are read from the command line', () => {
    expect(shapeOption('a:b:1,2')).toEqual(['a:b', [1, 2]])
    for (const text of ['', 'a', 'a:', 'a:1,,2', 'a:-1', 'a:x'])
      expect(() => shapeOption(text)).toThrow('--shape')
  })
})

describe.each(datatypes)('made up tensors of %s', (datatype) => {
  const input = { name: 'in', datatype, shape: [2, 3] }

  it('fill their shape, and are the same for the same seed', () => {
    const [zeros, random] = [zeroTensor(input), seededTensor(input, seededRandom(3))]
    for (const tensor of [zeros, random]) expect(() => checkTensor(tensor, 'm', '')).not.toThrow()
    expect(seededTensor(input, seededRandom(3))).toEqual(random)
    expect(seededTensor(input, seededRandom(4)).data).not.toEqual(random.data)
  })
})

it('makes floats of every width from 0 to 1', () => {
  const random = (datatype: Datatype) =>
    seededTensor({ name: 'in', datatype, shape: [100] }, seededRandom(1)).data
  const floats = [
    ...elementsOf('FP32', random('FP32')),
    ...floatsOf(elementsOf('FP16', random('FP16')) as Uint16Array),
  ].map(Number)
  expect(Math.min(...floats)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...floats)).toBeLessThanOrEqual(1)
  expect([...stringsOf(random('BYTES'))].every((text) => text.length === 128)).toBe(true)
})
