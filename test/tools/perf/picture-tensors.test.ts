import { describe, expect, it } from 'vitest'
import { elementsOf, floatsOf } from '../../../src/tensors/elements.js'
import type { ArrayDatatype } from '../../../src/tensors/element-type.js'
import { frameTensor, pictureInput } from '../../../src/tools/perf/picture-tensors.js'

const input = (datatype: ArrayDatatype | 'BYTES', shape: readonly number[], name = 'images') => ({
  name,
  datatype,
  shape,
})

describe('the input for pictures', () => {
  it.each([
    [
      'bytes in rows',
      [input('UINT8', [1, 4, 6, 3])],
      { size: { widthPx: 6, heightPx: 4 }, planar: false },
      1,
    ],
    [
      'planes of floats',
      [input('FP32', [2, 3, 4, 6])],
      { size: { widthPx: 6, heightPx: 4 }, planar: true },
      2,
    ],
    [
      'pixels without a batch',
      [input('UINT8', [4, 6, 3])],
      { size: { widthPx: 6, heightPx: 4 }, planar: false },
      1,
    ],
    [
      'pixels beside numbers',
      [input('INT64', [1]), input('FP16', [1, 3, 4, 6])],
      { size: { widthPx: 6, heightPx: 4 }, planar: true },
      1,
    ],
    ['encoded pictures', [input('BYTES', [4, 1])], undefined, 4],
  ])('is that of %s', (_, inputs, pixels, count) => {
    expect(pictureInput(inputs)).toMatchObject({ input: inputs.at(-1), count })
    expect(pictureInput(inputs).pixels).toEqual(pixels)
  })

  it.each([
    ['none', [input('FP32', [1, 16])], 'no input for pictures'],
    [
      'two',
      [input('UINT8', [4, 6, 3], 'a'), input('UINT8', [4, 6, 3], 'b')],
      'several inputs for pictures: a, b',
    ],
  ])('is refused where there is %s', (_, inputs, problem) => {
    expect(() => pictureInput(inputs)).toThrow(problem)
  })
})

const frame = Uint8Array.of(0, 51, 255, 10, 20, 30)

it.each([
  ['UINT8', [1, 1, 2, 3], [0, 51, 255, 10, 20, 30]],
  ['UINT8', [1, 3, 1, 2], [0, 10, 51, 20, 255, 30]],
  ['FP32', [1, 3, 1, 2], [0, 10, 51, 20, 255, 30].map((value) => value / 255)],
  ['FP16', [1, 1, 2, 3], [0, 51, 255, 10, 20, 30].map((value) => value / 255)],
] as const)('writes a frame as %s %j', (datatype, shape, values) => {
  const tensor = frameTensor(pictureInput([input(datatype, shape)]), [frame])
  const elements = elementsOf(datatype, tensor.data)
  const numbers = datatype === 'FP16' ? floatsOf(elements as Uint16Array) : elements
  expect(tensor.shape).toEqual(shape)
  values.forEach((value, index) => expect(Number(numbers[index])).toBeCloseTo(value, 3))
})

it('writes every byte as the nearest half float', () => {
  const all = Uint8Array.from({ length: 258 }, (_, index) => Math.min(255, index))
  const { data } = frameTensor(pictureInput([input('FP16', [1, 1, 86, 3])]), [all])
  const halves = floatsOf(elementsOf('FP16', data) as Uint16Array)
  all.forEach((byte, index) =>
    expect(Math.abs(halves[index]! - byte / 255)).toBeLessThanOrEqual((byte / 255) * 2 ** -11 + 1e-9),
  )
})

it('puts several frames into a batch', () => {
  const two = frameTensor(pictureInput([input('UINT8', [2, 1, 2, 3])]), [
    frame,
    frame.map((value) => value + 1),
  ])
  expect([...two.data]).toEqual([0, 51, 255, 10, 20, 30, 1, 52, 0, 11, 21, 31])
})
