export function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value))
}

/** What each of `count` values from `at` is divided by after `exp(value - highest)`. */
export function softmaxSum(
  values: Float32Array,
  at: number,
  count: number,
): { highest: number; sum: number } {
  let highest = -Infinity
  for (let i = 0; i < count; i++) highest = Math.max(highest, values[at + i]!)
  let sum = 0
  for (let i = 0; i < count; i++) sum += Math.exp(values[at + i]! - highest)
  return { highest, sum }
}

/** Mean of the positions 0, 1, 2, ... under the softmax of `count` values from `at`. */
export function softmaxMean(values: Float32Array, at: number, count: number): number {
  const { highest, sum } = softmaxSum(values, at, count)
  let mean = 0
  for (let i = 1; i < count; i++) mean += i * Math.exp(values[at + i]! - highest)
  return mean / sum
}

/** Index of the highest of `count` values from `at`; the first one of equals. */
export function bestClassAt(values: Float32Array, at: number, count: number): number {
  let best = 0
  for (let c = 1; c < count; c++) if (values[at + c]! > values[at + best]!) best = c
  return best
}
