import { planeSize, type PicturePlane } from './picture-plane.js'

/** What is told of a picture without knowing another one. */
export type PlaneFigures = Readonly<{
  /** Brightness that one cell in ten exceeds, 0-255. */
  brightMost: number
  meanLuma: number
  /** Standard deviation of the brightness over the cells. */
  contrast: number
  /** Mean of the cells. */
  detail: number
}>

export function planeFigures({ luma, detail }: PicturePlane): PlaneFigures {
  const sorted = Float32Array.from(luma).sort()
  const meanLuma = meanOf(luma)
  const variance = luma.reduce((sum, value) => sum + (value - meanLuma) ** 2, 0) / luma.length
  return {
    brightMost: sorted[Math.floor(sorted.length * 0.9)] ?? 0,
    meanLuma,
    contrast: Math.sqrt(variance),
    detail: meanOf(detail),
  }
}

function meanOf(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

export type PlanePart = Readonly<{ x: number; y: number; width: number; height: number }>

/** Less than noise makes of a flat part. */
const leastVariance = 0.5

/** Pearson's correlation of a part of two planes, -1 to 1; 0 where one of them is flat there. */
export function correlationWithin(
  one: Float32Array,
  other: Float32Array,
  { x, y, width, height }: PlanePart,
): number {
  const n = width * height
  let [sumA, sumB, sumAA, sumBB, sumAB] = [0, 0, 0, 0, 0]
  for (let row = y; row < y + height; row += 1)
    for (let column = x; column < x + width; column += 1) {
      const a = one[row * planeSize.across + column]!
      const b = other[row * planeSize.across + column]!
      sumA += a
      sumB += b
      sumAA += a * a
      sumBB += b * b
      sumAB += a * b
    }
  const varianceA = sumAA - (sumA * sumA) / n
  const varianceB = sumBB - (sumB * sumB) / n
  if (varianceA < n * leastVariance || varianceB < n * leastVariance) return 0
  return (sumAB - (sumA * sumB) / n) / Math.sqrt(varianceA * varianceB)
}
