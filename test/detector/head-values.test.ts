import { expect, it } from 'vitest'
import { headValues } from '../../src/detector/head-values.js'

it('takes floats as they lie in memory', () => {
  const { buffer } = Float32Array.of(1.5, -2)
  expect(headValues(buffer, 'float32').buffer).toBe(buffer)
})

it('turns integers into the numbers they stand for', () => {
  expect([...headValues(Int8Array.of(-128, 0, 127).buffer, 'int8', { scale: 0.5, zeroPoint: -128 })]).toEqual(
    [0, 64, 127.5],
  )
  expect([...headValues(BigInt64Array.of(7n, -1n).buffer, 'int64')]).toEqual([7, -1])
})

it('reads half floats: ordinary, subnormal, infinite and not a number', () => {
  const halves = Uint16Array.of(0x3c00, 0xc000, 0x3555, 0x0001, 0x7c00, 0x7e00, 0x8000)
  const values = [...headValues(halves.buffer, 'float16')]
  expect(values.slice(0, 2)).toEqual([1, -2])
  expect(values[2]).toBeCloseTo(1 / 3, 3)
  expect(values[3]).toBeCloseTo(2 ** -24, 12)
  expect(values[4]).toBe(Infinity)
  expect(values[5]).toBeNaN()
  expect(values[6]).toBe(-0)
})

it('refuses text', () => {
  expect(() => headValues(new ArrayBuffer(4), 'string')).toThrow('cannot be read as detections')
})
