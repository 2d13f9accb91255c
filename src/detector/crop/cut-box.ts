import type { BoxPx } from '../../vision/detection.js'
import type { SizePx } from '../../vision/letterbox.js'

/** A frame and where the picture lies in it, without the padding around it. */
export type CroppedFrame = Readonly<{
  /** uint8 `[heightPx, widthPx, 3]`. */
  rgbHwc: Uint8Array
  widthPx: number
  /** Maps pixels of the picture to those of the frame: `frame = picture * scale + pad`. */
  scale: number
  padXPx: number
  padYPx: number
  /** First pixel of the picture in the frame, and first one behind it. */
  leftPx: number
  topPx: number
  rightPx: number
  bottomPx: number
}>

/** @param geometry - scale, padding before the picture in x and y, width and height of the picture; `undefined`: the frame is the picture. */
export function croppedFrame(
  rgbHwc: Uint8Array,
  frame: SizePx,
  geometry: ArrayLike<number> | undefined,
): CroppedFrame {
  const [
    scale = 1,
    padXPx = 0,
    padYPx = 0,
    pictureWidthPx = frame.widthPx,
    pictureHeightPx = frame.heightPx,
  ] = geometry === undefined ? [] : Array.from(geometry)
  const [leftPx, rightPx] = extent(padXPx, pictureWidthPx * scale, frame.widthPx)
  const [topPx, bottomPx] = extent(padYPx, pictureHeightPx * scale, frame.heightPx)
  return { rgbHwc, widthPx: frame.widthPx, scale, padXPx, padYPx, leftPx, topPx, rightPx, bottomPx }
}

/** Pixels of the picture along one side of the frame: the first, and the first behind it; at least one. */
function extent(padPx: number, lengthPx: number, framePx: number): [number, number] {
  const from = Math.min(Math.max(Math.round(padPx), 0), framePx - 1)
  const to = Math.min(Math.max(Math.round(padPx) + Math.round(lengthPx), from + 1), framePx)
  return [from, to]
}

/**
 * Cuts a box out of a frame and stretches it to a size: by linear interpolation where it grows, by the mean of all pixels, weighed by a
 * triangle, where it shrinks. Pixels beside the box are looked at where they lie in the picture, never those of the padding.
 *
 * A box is clipped to the picture. What is left of it is at least one pixel, the nearest.
 *
 * @param box - in pixels of the picture.
 * @param marginShare - of the width and height of the box, added on each side before it is clipped.
 * @param out - `size` pixels of three bytes are overwritten.
 */
export function cutBox(
  frame: CroppedFrame,
  { x1, y1, x2, y2 }: BoxPx,
  marginShare: number,
  size: SizePx,
  out: Uint8Array,
): void {
  const { scale, padXPx, padYPx, leftPx, topPx, rightPx, bottomPx } = frame
  const marginX = marginShare * (x2 - x1)
  const marginY = marginShare * (y2 - y1)
  const toX = (x: number) => x * scale + padXPx
  const toY = (y: number) => y * scale + padYPx
  const across = samples(clipped(toX(x1 - marginX), toX(x2 + marginX), leftPx, rightPx), size.widthPx)
  const down = samples(clipped(toY(y1 - marginY), toY(y2 + marginY), topPx, bottomPx), size.heightPx)
  resample(frame, across, down, out)
}

/** Part of one side of the picture. */
type Range = Readonly<{ from: number; to: number; low: number; high: number }>

function clipped(from: number, to: number, low: number, high: number): Range {
  // What is not a number is at the beginning.
  const at = (value: number) => Math.min(Math.max(Number.isNaN(value) ? low : value, low), high)
  const [a, b] = [at(from), at(to)]
  if (b - a >= 1) return { from: a, to: b, low, high }
  const first = Math.min(Math.floor((a + b) / 2), high - 1)
  return { from: first, to: first + 1, low, high }
}

/** For each pixel of the crop along one side: where its pixels of the frame begin, and their weights. */
type Samples = Readonly<{ firsts: Int32Array; weights: readonly Float32Array[]; low: number; high: number }>

/** A triangle over the pixels around the middle of each sample, twice as wide as the sample or as a pixel, whichever is more. */
function samples({ from, to, low, high }: Range, count: number): Samples {
  const step = (to - from) / count
  const reach = Math.max(step, 1)
  const firsts = new Int32Array(count)
  const weights: Float32Array[] = []
  for (let index = 0; index < count; index++) {
    const middle = from + (index + 0.5) * step
    const first = Math.max(low, Math.floor(middle - reach + 0.5))
    const end = Math.min(high, Math.max(first + 1, Math.floor(middle + reach + 0.5)))
    const own = new Float32Array(end - first)
    let sum = 0
    for (let at = 0; at < own.length; at++) {
      own[at] = Math.max(0, 1 - Math.abs(first + at + 0.5 - middle) / reach)
      sum += own[at]!
    }
    for (let at = 0; at < own.length; at++) own[at]! /= sum
    firsts[index] = first
    weights.push(own)
  }
  return { firsts, weights, low: firsts[0]!, high: firsts[count - 1]! + weights[count - 1]!.length }
}

/** Across first, for the rows that are needed, then down. */
function resample({ rgbHwc, widthPx }: CroppedFrame, across: Samples, down: Samples, out: Uint8Array): void {
  const rowLength = across.firsts.length * 3
  const rows = new Float32Array((down.high - down.low) * rowLength)
  for (let y = down.low, to = 0; y < down.high; y++)
    for (let x = 0; x < across.firsts.length; x++, to += 3) {
      const weights = across.weights[x]!
      let red = 0
      let green = 0
      let blue = 0
      for (let at = 0, pixel = (y * widthPx + across.firsts[x]!) * 3; at < weights.length; at++, pixel += 3) {
        const weight = weights[at]!
        red += weight * rgbHwc[pixel]!
        green += weight * rgbHwc[pixel + 1]!
        blue += weight * rgbHwc[pixel + 2]!
      }
      rows[to] = red
      rows[to + 1] = green
      rows[to + 2] = blue
    }
  for (let y = 0, to = 0; y < down.firsts.length; y++) {
    const weights = down.weights[y]!
    const begin = (down.firsts[y]! - down.low) * rowLength
    for (let element = 0; element < rowLength; element++, to++) {
      let value = 0.5
      for (let at = 0, row = begin + element; at < weights.length; at++, row += rowLength)
        value += weights[at]! * rows[row]!
      out[to] = value
    }
  }
}
