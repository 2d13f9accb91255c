import { describe, expect, it } from 'vitest'
import { floatsOf, halfBits } from '../../src/tensors/elements.js'

describe('halfBits', () => {
  it('gives every half number its own bits', () => {
    const all = Uint16Array.from({ length: 0x1_0000 }, (_, bits) => bits)
    const wrong = [...floatsOf(all)].flatMap((value, bits) =>
      Number.isNaN(value) || halfBits(value) === bits ? [] : [bits],
    )
    expect(wrong).toEqual([])
    expect(floatsOf(Uint16Array.of(halfBits(Number.NaN)))[0]).toBeNaN()
  })

  it.each([
    // One is 0x3c00, and its neighbours are 2 ** -11 below and 2 ** -10 above.
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [1 + 2 ** -11 + 1e-6, 0x3c01],
    [65_519, 0x7bff],
    [65_520, 0x7c00],
    [-Infinity, 0xfc00],
    [2 ** -25, 0],
    [2 ** -25 * 1.01, 1],
    [2 ** -14 - 2 ** -26, 0x0400],
  ])('rounds %d to the nearest', (value, bits) => {
    expect(halfBits(value)).toBe(bits)
  })
})
