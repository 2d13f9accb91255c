import { expect, it } from 'vitest'
import { pictureHash, sceneChange, sceneSignature } from '../../src/vision/scene-signature.js'

const size = { widthPx: 64, heightPx: 48 }

/** A picture of one brightness with noise of the given height, the same for the same seed. */
function picture(brightness: number, noise = 0, seed = 1): ArrayBuffer {
  const bytes = new Uint8Array(size.widthPx * size.heightPx * 3)
  let state = seed
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes[at] = brightness + (noise === 0 ? 0 : ((state >>> 16) % (2 * noise + 1)) - noise)
  }
  return bytes.buffer
}

function fill(rgbHwc: ArrayBuffer, x: number, y: number, side: number, value: number): ArrayBuffer {
  const bytes = new Uint8Array(rgbHwc)
  for (let row = y; row < y + side; row++)
    bytes.fill(value, (row * size.widthPx + x) * 3, (row * size.widthPx + x + side) * 3)
  return rgbHwc
}

it('has one mean for each cell of 8 x 8 pixels', () => {
  const signature = sceneSignature(fill(picture(100), 8, 16, 8, 200), size)
  expect(signature).toHaveLength(8 * 6)
  expect(signature[2 * 8 + 1]).toBe(200)
  expect([...signature].filter((mean) => mean !== 100)).toEqual([200])
})

it('takes the noise of a sensor for no change, and an object of six pixels for one', () => {
  const still = sceneSignature(picture(100, 8, 1), size)
  expect(sceneChange(still, sceneSignature(picture(100, 8, 2), size))).toBeLessThan(8)
  const withObject = sceneSignature(fill(picture(100, 8, 3), 21, 13, 6, 170), size)
  expect(sceneChange(still, withObject)).toBeGreaterThan(12)
})

it('takes pictures of different sizes for different', () => {
  expect(sceneChange(new Uint8Array(4), new Uint8Array(5))).toBe(255)
})

it('hashes equal pictures alike and noisy ones differently', () => {
  expect(pictureHash(picture(90, 3, 5))).toBe(pictureHash(picture(90, 3, 5)))
  expect(pictureHash(picture(90, 3, 5))).not.toBe(pictureHash(picture(90, 3, 6)))
})
