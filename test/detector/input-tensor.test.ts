import { describe, expect, it } from 'vitest'
import { floatsOf } from '../../src/tensors/elements.js'
import { frameElements, type InputPlan, isFrameItself, writeFrame } from '../../src/detector/input-tensor.js'

const plan = (over: Partial<InputPlan>): InputPlan => ({
  name: 'images',
  layout: 'float32-nchw',
  size: { widthPx: 3, heightPx: 2 },
  channels: 'rgb',
  range: '0-255',
  align: 'center',
  ...over,
})

/** Pixel p has red p, green 100 + p, blue 200 + p. */
function picture(pixels: number): ArrayBuffer {
  const bytes = new Uint8Array(pixels * 3)
  for (let p = 0; p < pixels; p++) bytes.set([p, 100 + p, 200 + p], p * 3)
  return bytes.buffer
}

const planes = (pixels: number, firsts: readonly number[]) =>
  firsts.flatMap((first) => Array.from({ length: pixels }, (_, p) => first + p))

describe('writeFrame', () => {
  // 6 and 7 pixels: one whole read of four, and a remainder.
  it.each([4, 6, 7])('spreads %d pixels over planes', (pixels) => {
    const size = { widthPx: pixels, heightPx: 1 }
    const out = new Float32Array(pixels * 3)
    writeFrame(plan({ size }), picture(pixels), out, 0)
    expect([...out]).toEqual(planes(pixels, [0, 100, 200]))
    writeFrame(plan({ size, channels: 'bgr' }), picture(pixels), out, 0)
    expect([...out]).toEqual(planes(pixels, [200, 100, 0]))
  })

  it('divides by 255 for models that take 0..1', () => {
    const out = new Float32Array(18)
    writeFrame(plan({ range: '0-1' }), picture(6), out, 0)
    expect(out[6]).toBeCloseTo(100 / 255, 7)
    expect(out[17]).toBeCloseTo(205 / 255, 7)
  })

  it('writes halves as bits, and doubles', () => {
    const halves = new Uint16Array(18)
    writeFrame(plan({ layout: 'float16-nchw', range: '0-1' }), picture(6), halves, 0)
    const values = floatsOf(halves)
    expect(values[6]).toBeCloseTo(100 / 255, 3)
    expect(values[17]).toBeCloseTo(205 / 255, 3)
    const normalise = { mean: [100, 100, 100], std: [50, 50, 50] }
    writeFrame(plan({ layout: 'float16-nhwc', normalise }), picture(6), halves, 0)
    expect([...floatsOf(halves).subarray(0, 3)]).toEqual([-2, 0, 2])
    const doubles = new Float64Array(18)
    writeFrame(plan({ layout: 'float64-nchw' }), picture(6), doubles, 0)
    expect([...doubles]).toEqual(planes(6, [0, 100, 200]))
  })

  it('writes bytes to planes, and to where the frame of a batch belongs', () => {
    const out = new Uint8Array(36)
    writeFrame(plan({ layout: 'uint8-nchw' }), picture(6), out, 18)
    expect([...out]).toEqual([...Array<number>(18).fill(0), ...planes(6, [0, 100, 200])])
  })

  it('copies or swaps interleaved bytes', () => {
    const out = new Uint8Array(6)
    const size = { widthPx: 2, heightPx: 1 }
    writeFrame(plan({ layout: 'uint8-nhwc', size }), picture(2), out, 0)
    expect([...out]).toEqual([0, 100, 200, 1, 101, 201])
    writeFrame(plan({ layout: 'uint8-nhwc', size, channels: 'bgr' }), picture(2), out, 0)
    expect([...out]).toEqual([200, 100, 0, 201, 101, 1])
  })

  it('knows when a frame is the tensor as it is', () => {
    expect(isFrameItself(plan({ layout: 'uint8-nhwc' }))).toBe(true)
    expect(isFrameItself(plan({ layout: 'uint8-nhwc', channels: 'bgr' }))).toBe(false)
    expect(isFrameItself(plan({}))).toBe(false)
    expect(frameElements(plan({}))).toBe(18)
  })
})
