import { samplesPerCell, type PicturePlane } from './picture-plane.js'
import { meanWithin, planeParts, unevenness } from './plane-parts.js'

/** Unevenness of a part in which nothing is: a bare floor has more, and noise less. */
const emptyBelow = 1
/** Noise is in every cell; what is sharp is not in the plainest tenth of them. */
const plainest = 0.1
/** Mean absolute Laplacian of white noise of deviation 1: that of 4 a - b - c - d - e. */
const detailOfNoise = Math.sqrt(20) * Math.sqrt(2 / Math.PI)

/** What is told of a picture without knowing another one. */
export type PlaneFigures = Readonly<{
  /** Brightness that one cell in ten exceeds, 0-255. */
  brightMost: number
  meanLuma: number
  /** Standard deviation of the brightness of its parts. */
  contrast: number
  /** Of each part, see `unevenness`. */
  uneven: readonly number[]
  /** Mean of those. */
  structure: number
  /** What noise adds to them. */
  noise: number
  /** Detail beyond that of noise. */
  sharp: number
}>

export function planeFigures({ luma, detail }: PicturePlane): PlaneFigures {
  const means = planeParts.map((part) => meanWithin(luma, part))
  const floor = quantile(detail, plainest)
  const uneven = planeParts.map((part) => unevenness(luma, part))
  return {
    brightMost: quantile(luma, 0.9),
    meanLuma: meanOf(luma),
    contrast: deviationOf(means),
    uneven,
    structure: meanOf(uneven),
    noise: (floor / detailOfNoise) ** 2 / samplesPerCell,
    sharp: meanOf(detail) - floor,
  }
}

/** Share of the parts in which nothing is, 0-1. @param noise - that is in them. */
export function emptyShare({ uneven }: Pick<PlaneFigures, 'uneven'>, noise = 0): number {
  return uneven.filter((value) => value < emptyBelow + noise).length / uneven.length
}

export function deviationOf(values: readonly number[]): number {
  const mean = meanOf(values)
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length))
}

function quantile(values: Float32Array, share: number): number {
  const sorted = Float32Array.from(values).sort()
  return sorted[Math.floor(sorted.length * share)] ?? 0
}

function meanOf(values: Float32Array | readonly number[]): number {
  let sum = 0
  for (const value of values) sum += value
  return sum / Math.max(1, values.length)
}
