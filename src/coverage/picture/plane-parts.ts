import { planeSize } from './picture-plane.js'

const { across, down } = planeSize

/** A rectangle of cells. */
export type PlanePart = Readonly<{ x: number; y: number; width: number; height: number }>

const block = { width: across / 8, height: down / 4 }
/** Parts that are looked at one by one: people and machines change some of them, a camera that was moved all. */
export const planeParts: readonly PlanePart[] = Array.from({ length: 32 }, (_, index) => ({
  x: (index % 8) * block.width,
  y: Math.floor(index / 8) * block.height,
  ...block,
}))

/** Less than noise makes of a flat part. */
const leastVariance = 0.5

export function forEachCell(
  { x, y, width, height }: PlanePart,
  visit: (cell: number, column: number, row: number) => void,
): void {
  for (let row = 0; row < height; row += 1)
    for (let column = 0; column < width; column += 1) visit((y + row) * across + x + column, column, row)
}

export function meanWithin(values: Float32Array, part: PlanePart): number {
  let sum = 0
  forEachCell(part, (cell) => (sum += values[cell]!))
  return sum / (part.width * part.height)
}

/** Variance of a part about the plane that fits it best: light that falls off to one side is no structure. */
export function unevenness(luma: Float32Array, part: PlanePart): number {
  const n = part.width * part.height
  const [midX, midY] = [(part.width - 1) / 2, (part.height - 1) / 2]
  let [sum, squares, byX, byY] = [0, 0, 0, 0]
  forEachCell(part, (cell, column, row) => {
    const value = luma[cell]!
    sum += value
    squares += value * value
    byX += value * (column - midX)
    byY += value * (row - midY)
  })
  const varianceX = (part.width ** 2 - 1) / 12
  const varianceY = (part.height ** 2 - 1) / 12
  const explained = (byX / n) ** 2 / varianceX + (byY / n) ** 2 / varianceY
  return Math.max(0, squares / n - (sum / n) ** 2 - explained)
}

/** Pearson's correlation of a part of two planes, -1 to 1; 0 where one of them is flat there. */
export function correlationWithin(one: Float32Array, other: Float32Array, part: PlanePart): number {
  const n = part.width * part.height
  let [sumA, sumB, sumAA, sumBB, sumAB] = [0, 0, 0, 0, 0]
  forEachCell(part, (cell) => {
    const a = one[cell]!
    const b = other[cell]!
    sumA += a
    sumB += b
    sumAA += a * a
    sumBB += b * b
    sumAB += a * b
  })
  const varianceA = sumAA - (sumA * sumA) / n
  const varianceB = sumBB - (sumB * sumB) / n
  if (varianceA < n * leastVariance || varianceB < n * leastVariance) return 0
  return (sumAB - (sumA * sumB) / n) / Math.sqrt(varianceA * varianceB)
}
