export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}

export function lerp(from: number, to: number, share: number): number {
  return from + (to - from) * share
}

/** 0 below `low`, 1 above `high`, smooth between. */
export function smoothstep(low: number, high: number, value: number): number {
  const share = clamp((value - low) / (high - low), 0, 1)
  return share * share * (3 - 2 * share)
}

/** Rises over `rampS` after `fromS`, falls over `rampS` before `toS`: the weight of a gesture. */
export function window01(fromS: number, toS: number, rampS: number, atS: number): number {
  const ramp = Math.min(rampS, (toS - fromS) / 2)
  return smoothstep(fromS, fromS + ramp, atS) * (1 - smoothstep(toS - ramp, toS, atS))
}
