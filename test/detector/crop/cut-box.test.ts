import { describe, expect, it } from 'vitest'
import { croppedFrame, cutBox } from '../../../src/detector/crop/cut-box.js'

type Colour = readonly [number, number, number]
type Paint = (x: number, y: number) => Colour

function frameOf(widthPx: number, heightPx: number, paint: Paint, geometry?: readonly number[]) {
  const rgb = new Uint8Array(widthPx * heightPx * 3)
  for (let y = 0; y < heightPx; y++)
    for (let x = 0; x < widthPx; x++) rgb.set(paint(x, y), (y * widthPx + x) * 3)
  return croppedFrame(rgb, { widthPx, heightPx }, geometry)
}

function cut(
  frame: ReturnType<typeof frameOf>,
  [x1, y1, x2, y2]: readonly [number, number, number, number],
  [widthPx, heightPx]: readonly [number, number],
  margin = 0,
) {
  const out = new Uint8Array(widthPx * heightPx * 3)
  cutBox(frame, { x1, y1, x2, y2 }, margin, { widthPx, heightPx }, out)
  return Array.from({ length: widthPx * heightPx }, (_, pixel) => [...out.subarray(pixel * 3, pixel * 3 + 3)])
}

/** Red is the column, green the row. */
const grid: Paint = (x, y) => [x * 10, y * 10, 7]

describe('a box', () => {
  it('of the size of its crop is copied pixel by pixel', () => {
    expect(cut(frameOf(20, 20, grid), [4, 6, 7, 8], [3, 2])).toEqual([
      [40, 60, 7],
      [50, 60, 7],
      [60, 60, 7],
      [40, 70, 7],
      [50, 70, 7],
      [60, 70, 7],
    ])
  })

  it('is found in a frame that is scaled and padded', () => {
    const frame = frameOf(20, 20, grid, [0.5, 2, 4, 32, 24])
    expect(cut(frame, [8, 8, 12, 12], [2, 2])).toEqual([
      [60, 80, 7],
      [70, 80, 7],
      [60, 90, 7],
      [70, 90, 7],
    ])
  })

  it('that is smaller than its crop is interpolated, beyond its edges by what the picture has there', () => {
    const row = cut(frameOf(20, 20, grid), [4, 4, 6, 5], [4, 1]).map(([red]) => red)
    expect(row).toEqual([38, 43, 48, 53])
  })

  it('that is larger than its crop is averaged: fine lines become grey, not black or white', () => {
    const lines = frameOf(64, 64, (x) => (x % 2 === 0 ? [0, 0, 0] : [255, 255, 255]))
    for (const [red = 0] of cut(lines, [8, 8, 56, 56], [6, 6])) expect(Math.abs(red - 127.5)).toBeLessThan(4)
  })

  it('has its margin as a share of its own width and height', () => {
    expect(cut(frameOf(20, 20, grid), [6, 6, 10, 8], [6, 3], 0.25)).toEqual(
      cut(frameOf(20, 20, grid), [5, 5.5, 11, 8.5], [6, 3]),
    )
  })

  it('never shows the padding, whatever its margin', () => {
    const picture: Paint = (x, y) => (x >= 5 && x < 15 && y >= 8 && y < 12 ? [200, 100, 50] : [114, 114, 114])
    const frame = frameOf(20, 20, picture, [0.25, 5, 8, 40, 16])
    const crops = [
      ...cut(frame, [0, 0, 40, 16], [12, 9], 1),
      ...cut(frame, [-50, -50, 4, 4], [5, 5]),
      ...cut(frame, [36, 12, 90, 90], [5, 5]),
    ]
    for (const pixel of crops) expect(pixel).toEqual([200, 100, 50])
  })

  it.each<[string, [number, number, number, number], Colour]>([
    ['without width', [5, 5, 5, 9], [50, 65, 7]],
    ['without an area', [5.5, 6.5, 5.5, 6.5], [50, 60, 7]],
    ['less than a pixel wide', [5.2, 6.2, 5.4, 6.3], [50, 60, 7]],
    ['turned around', [9, 9, 5, 5], [70, 70, 7]],
    ['left of the picture', [-9, 3, -4, 4], [0, 30, 7]],
    ['right of and below the picture', [90, 90, 99, 99], [190, 190, 7]],
    ['that is no number', [NaN, NaN, NaN, NaN], [0, 0, 7]],
    ['that is infinite', [Infinity, Infinity, Infinity, Infinity], [0, 0, 7]],
  ])('%s is a pixel or a line of them', (_, box, colour) => {
    expect(cut(frameOf(20, 20, grid), box, [1, 1])).toEqual([colour])
  })
})
