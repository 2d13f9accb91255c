/** What a run of the largest batch took with weights in float32 and in float16, on one card. */
export type Float16Finding = Readonly<{ size: number; ms: number; float16Ms: number }>

/** The same, or why the model in float16 did not run. */
export type Float16Comparison = Float16Finding | Readonly<{ size: number; ms: number; reason: string }>

/** Of the time in float32: what takes longer gains nothing worth other scores. */
const gainsBelow = 0.95

export function isFasterInFloat16(comparison: Float16Comparison): boolean {
  return 'float16Ms' in comparison && comparison.float16Ms < comparison.ms * gainsBelow
}

/** For people: `float16 takes 3.1 ms for a batch of 8, float32 4.9 ms`. */
export function comparisonText(comparison: Float16Comparison): string {
  const float32 = `float32 ${comparison.ms.toFixed(1)} ms`
  return 'reason' in comparison
    ? `float16 does not run: ${comparison.reason}; ${float32} for a batch of ${comparison.size}`
    : `float16 takes ${comparison.float16Ms.toFixed(1)} ms for a batch of ${comparison.size}, ${float32}`
}
