import type { HeadOptions } from './head.js'

export type Activation = HeadOptions['activation']

export function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value))
}

/** A score that stands alone, as 0..1 where the model gives what the activation says. */
export function activated(value: number, activation: Activation): number {
  switch (activation) {
    case 'sigmoid':
      return sigmoid(value)
    case 'percent':
      return value / 100
    // Of a number alone: a softmax is of a row, and in `scoreInRow`.
    case 'softmax':
    case 'none':
      return value
    default:
      return activation satisfies never
  }
}

/** What a number must at least be to give a score of `minScore`; no number is too small for a softmax. */
export function leastBefore(minScore: number, activation: Activation): number {
  switch (activation) {
    case 'sigmoid':
      // From there on a sigmoid is 1.
      return Math.min(Math.log(minScore / (1 - minScore)), 36)
    case 'percent':
      return minScore * 100
    case 'softmax':
      return -Infinity
    case 'none':
      return minScore
    default:
      return activation satisfies never
  }
}

/**
 * The score of one of the columns of a row.
 *
 * @param at - of the first column. @param step - elements from one column to the next.
 */
export function scoreInRow(
  values: Float32Array,
  at: number,
  columns: number,
  column: number,
  activation: Activation,
  step = 1,
): number {
  const value = values[at + column * step]!
  if (activation !== 'softmax') return activated(value, activation)
  const { highest, sum } = softmaxSum(values, at, columns, step)
  return Math.exp(value - highest) / sum
}

/** What each of `count` values from `at` is divided by after `exp(value - highest)`. */
export function softmaxSum(
  values: Float32Array,
  at: number,
  count: number,
  step = 1,
): { highest: number; sum: number } {
  let highest = -Infinity
  for (let i = 0; i < count; i++) highest = Math.max(highest, values[at + i * step]!)
  let sum = 0
  for (let i = 0; i < count; i++) sum += Math.exp(values[at + i * step]! - highest)
  return { highest, sum }
}

/** Mean of the positions 0, 1, 2, ... under the softmax of `count` values from `at`. */
export function softmaxMean(values: Float32Array, at: number, count: number, step = 1): number {
  const { highest, sum } = softmaxSum(values, at, count, step)
  let mean = 0
  for (let i = 1; i < count; i++) mean += i * Math.exp(values[at + i * step]! - highest)
  return mean / sum
}

/** Index of the highest of `count` values from `at`; the first one of equals. */
export function bestClassAt(values: Float32Array, at: number, count: number, step = 1): number {
  let best = 0
  for (let c = 1; c < count; c++) if (values[at + c * step]! > values[at + best * step]!) best = c
  return best
}
