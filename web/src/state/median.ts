/** Middle of the values, the lower of two; 0 of none. */
export function median(values: readonly number[]): number {
  const ascending = [...values].sort((a, b) => a - b)
  return ascending[Math.floor((ascending.length - 1) / 2)] ?? 0
}
