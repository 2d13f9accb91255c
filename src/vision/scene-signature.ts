import type { SizePx } from './letterbox.js'

/** Side of a cell. A head of six pixels, the smallest that the detector finds, still covers half of one. */
const cellPx = 8

/** Cells across a picture of that size. */
function cellsOf({ widthPx, heightPx }: SizePx): { across: number; down: number } {
  return { across: Math.floor(widthPx / cellPx), down: Math.floor(heightPx / cellPx) }
}

/**
 * Mean brightness of every cell of 8 x 8 pixels, from every second pixel of every second row: 16 samples of green each.
 *
 * A mean over 16 samples divides the noise of the sensor by four, so that a still scene stays still.
 *
 * @param rgbHwc - uint8 `[heightPx, widthPx, 3]`. Borrowed for the call.
 * @returns one value 0-255 per cell, row by row; rows and columns that do not fill a cell are left out.
 */
export function sceneSignature(rgbHwc: ArrayBuffer, size: SizePx): Uint8Array {
  const bytes = new Uint8Array(rgbHwc)
  const { across, down } = cellsOf(size)
  const signature = new Uint8Array(across * down)
  const sums = new Uint16Array(across)
  for (let row = 0; row < down; row++) {
    sums.fill(0)
    for (let y = row * cellPx; y < (row + 1) * cellPx; y += 2) addLine(bytes, y * size.widthPx, sums)
    for (let column = 0; column < across; column++) signature[row * across + column] = sums[column]! >> 4
  }
  return signature
}

/** Adds the green of every second pixel of a line to the sum of its cell. */
function addLine(bytes: Uint8Array, firstPixel: number, sums: Uint16Array): void {
  for (let column = 0, at = firstPixel * 3 + 1; column < sums.length; column++, at += cellPx * 3)
    sums[column]! += bytes[at]! + bytes[at + 6]! + bytes[at + 12]! + bytes[at + 18]!
}

/** Largest difference of any cell, 0-255; 255 for pictures of different sizes. */
export function sceneChange(a: Uint8Array, b: Uint8Array): number {
  if (a.length !== b.length) return 255
  let most = 0
  for (let cell = 0; cell < a.length; cell++) {
    const difference = Math.abs(a[cell]! - b[cell]!)
    if (difference > most) most = difference
  }
  return most
}

/** Bytes that a picture's hash is made of; a prime step visits all columns and colours. */
const hashStep = 251

/** FNV-1a over every 251st byte. A picture from a working sensor never repeats it: noise alone changes most of the bytes. */
export function pictureHash(rgbHwc: ArrayBuffer): number {
  const bytes = new Uint8Array(rgbHwc)
  let hash = 0x811c9dc5
  for (let at = 0; at < bytes.length; at += hashStep) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  return hash >>> 0
}
