/** Cells of a plane: few enough to be quick, and a cell is about what a person at the far end takes. */
export const planeSize = { across: 64, down: 36 } as const
const cells = planeSize.across * planeSize.down
/** Samples along each side of a cell; 16 of them take the noise of the sensor down to a quarter. */
const samples = 4
export const samplesPerCell = samples ** 2

/** One picture, made small. Row by row from the top left. */
export type PicturePlane = Readonly<{
  /** Mean brightness of each cell, 0-255. */
  luma: Float32Array
  /** How much neighbouring pixels differ in it: mean of the absolute Laplacian of green, at the size that the picture has. */
  detail: Float32Array
}>

/**
 * @param rgbHwc - uint8 `[height, rowPx, 3]`. Borrowed for the call.
 * @param rowPx - pixels of a whole row, padding included.
 * @param area - the picture in it, at least 3 x 3 pixels.
 */
export function picturePlane(
  rgbHwc: ArrayBuffer,
  rowPx: number,
  area: Readonly<{ xPx: number; yPx: number; widthPx: number; heightPx: number }>,
): PicturePlane {
  const bytes = new Uint8Array(rgbHwc)
  const columns = places(area.widthPx, planeSize.across)
  const rows = places(area.heightPx, planeSize.down)
  const luma = new Float32Array(cells)
  const detail = new Float32Array(cells)
  const row = rowPx * 3
  for (let down = 0; down < rows.length; down += 1) {
    const line = (area.yPx + (rows[down] ?? 0)) * row + area.xPx * 3
    const cellLine = Math.floor(down / samples) * planeSize.across
    for (let across = 0; across < columns.length; across += 1) {
      const at = line + (columns[across] ?? 0) * 3
      const cell = cellLine + Math.floor(across / samples)
      const green = bytes[at + 1]!
      luma[cell]! += bytes[at]! + 2 * green + bytes[at + 2]!
      const around = bytes[at - 2]! + bytes[at + 4]! + bytes[at + 1 - row]! + bytes[at + 1 + row]!
      detail[cell]! += Math.abs(4 * green - around)
    }
  }
  for (let cell = 0; cell < cells; cell += 1) {
    luma[cell]! /= 4 * samplesPerCell
    detail[cell]! /= samplesPerCell
  }
  return { luma, detail }
}

/** Where samples lie along a side, evenly, none at its border: each has neighbours. */
function places(lengthPx: number, count: number): readonly number[] {
  const inner = lengthPx - 2
  return Array.from({ length: count * samples }, (_, index) =>
    Math.min(inner, 1 + Math.floor(((index + 0.5) * inner) / (count * samples))),
  )
}
