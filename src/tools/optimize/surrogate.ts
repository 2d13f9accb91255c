import type { SpacePlace } from './search-space.js'

/** What is expected at a place, in the unit of the values, and how far it may be off. */
export type Expectation = Readonly<{ mean: number; deviation: number }>

/** Shares of a variance that are tried for effects of single dimensions, the rest being of all together. */
const additiveShares = [0.9, 0.6, 0.3]
const lengths = [0.3, 0.7, 1.5]
/** Of single dimensions: from one whose every step matters to one that does not. */
const ownLengths = [0.3, 1, 3, 10]
const sweeps = 2
/** Of the variance: what two trials of one configuration differ by. */
const noise = 0.01

/**
 * A Gaussian process over configurations: what a dimension does alone, and what all do together.
 *
 * The kernel is `a/D * sum(k_d) + (1 - a) * prod(k_d)`, with `k_d = exp(-|x - y| / length)` on a scale and `exp(-1 / length)` between two
 * kinds. Share and lengths, one for each dimension, are those of a small grid under which the values are likeliest (C. Rasmussen,
 * C. Williams: Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and section 5.1).
 */
export class Surrogate {
  readonly #places: readonly SpacePlace[]
  readonly #mean: number
  readonly #scale: number
  readonly #kernel: (a: SpacePlace, b: SpacePlace) => number
  readonly #factor: readonly Float64Array[]
  readonly #weights: Float64Array

  /** @param values - one for each place, at least one. */
  constructor(places: readonly SpacePlace[], values: readonly number[]) {
    this.#places = places
    this.#mean = values.reduce((sum, value) => sum + value, 0) / values.length
    const variance = values.reduce((sum, value) => sum + (value - this.#mean) ** 2, 0) / values.length
    this.#scale = Math.sqrt(variance) || 1
    const targets = Float64Array.from(values, (value) => (value - this.#mean) / this.#scale)
    const best = likeliest(places, targets)
    this.#kernel = best.kernel
    this.#factor = best.factor
    this.#weights = best.weights
  }

  at(place: SpacePlace): Expectation {
    const near = Float64Array.from(this.#places, (known) => this.#kernel(known, place))
    const solved = forward(this.#factor, near)
    const mean = dot(near, this.#weights)
    const variance = Math.max(0, this.#kernel(place, place) - dot(solved, solved))
    return { mean: this.#mean + mean * this.#scale, deviation: Math.sqrt(variance) * this.#scale }
  }
}

/** By how much a value at a place is expected to be above the best one that is known (D. Jones et al., 1998). */
export function expectedImprovement({ mean, deviation }: Expectation, best: number): number {
  if (deviation === 0) return Math.max(0, mean - best)
  const z = (mean - best) / deviation
  const density = Math.exp(-(z ** 2) / 2) / Math.sqrt(2 * Math.PI)
  return (mean - best) * normal(z) + deviation * density
}

/** Cumulative normal distribution (Abramowitz and Stegun 26.2.17, to 7.5e-8). */
function normal(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const poly =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  const tail = (Math.exp(-(z ** 2) / 2) / Math.sqrt(2 * Math.PI)) * poly
  return z >= 0 ? 1 - tail : tail
}

type Kernel = (a: SpacePlace, b: SpacePlace) => number
type Fit = ReturnType<typeof fit>

/** The best share and length that all dimensions have, and then for each dimension the best length of its own. */
function likeliest(places: readonly SpacePlace[], targets: Float64Array): Fit {
  const count = places[0]?.length ?? 0
  let best: Fit | undefined
  const attempt = (share: number, of: readonly number[]): void => {
    const made = fit(places, targets, share, of)
    if (best === undefined || made.likelihood > best.likelihood) best = made
  }
  for (const share of additiveShares)
    for (const length of lengths) attempt(share, new Array<number>(count).fill(length))
  for (let sweep = 0; sweep < sweeps; sweep++)
    for (let dimension = 0; dimension < count; dimension++)
      for (const length of ownLengths) {
        const { share, of } = best!
        attempt(share, of.with(dimension, length))
      }
  return best!
}

function kernelOf(share: number, of: readonly number[]): Kernel {
  return (a, b) => {
    let sum = 0
    let product = 1
    for (const [index, { at, isOnScale }] of a.entries()) {
      const other = b[index]!.at
      const distance = isOnScale ? Math.abs(at - other) : at === other ? 0 : 1
      const each = Math.exp(-distance / of[index]!)
      sum += each
      product *= each
    }
    return a.length === 0 ? 1 : (share * sum) / a.length + (1 - share) * product
  }
}

function fit(places: readonly SpacePlace[], targets: Float64Array, share: number, of: readonly number[]) {
  const kernel = kernelOf(share, of)
  const matrix = places.map((a, row) =>
    Float64Array.from(places, (b, column) => kernel(a, b) + (row === column ? noise : 0)),
  )
  const factor = cholesky(matrix)
  const solved = forward(factor, targets)
  const weights = backward(factor, solved)
  const logDeterminant = factor.reduce((sum, row, index) => sum + Math.log(row[index]!), 0)
  return { share, of, kernel, factor, weights, likelihood: -dot(targets, weights) / 2 - logDeterminant }
}

/** Lower factor of a matrix that is symmetric and positive. */
function cholesky(matrix: readonly Float64Array[]): readonly Float64Array[] {
  const factor = matrix.map((row) => new Float64Array(row.length))
  for (let row = 0; row < matrix.length; row++)
    for (let column = 0; column <= row; column++) {
      let value = matrix[row]![column]!
      for (let k = 0; k < column; k++) value -= factor[row]![k]! * factor[column]![k]!
      factor[row]![column] =
        row === column ? Math.sqrt(Math.max(value, 1e-12)) : value / factor[column]![column]!
    }
  return factor
}

function forward(factor: readonly Float64Array[], values: Float64Array): Float64Array {
  const solved = new Float64Array(values.length)
  for (let row = 0; row < values.length; row++) {
    let value = values[row]!
    for (let k = 0; k < row; k++) value -= factor[row]![k]! * solved[k]!
    solved[row] = value / factor[row]![row]!
  }
  return solved
}

function backward(factor: readonly Float64Array[], values: Float64Array): Float64Array {
  const solved = new Float64Array(values.length)
  for (let row = values.length - 1; row >= 0; row--) {
    let value = values[row]!
    for (let k = row + 1; k < values.length; k++) value -= factor[k]![row]! * solved[k]!
    solved[row] = value / factor[row]![row]!
  }
  return solved
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += a[index]! * b[index]!
  return sum
}
