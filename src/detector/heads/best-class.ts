/** Index of the highest of `count` values from `at`; the first one of equals. */
export function bestClassAt(values: Float32Array, at: number, count: number): number {
  let best = 0
  for (let c = 1; c < count; c++) if (values[at + c]! > values[at + best]!) best = c
  return best
}
