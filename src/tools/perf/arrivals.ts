/** How requests of a rate are spread over time. */
export const arrivalDistributions = ['constant', 'poisson'] as const
export type ArrivalDistribution = (typeof arrivalDistributions)[number]

/** Numbers in 0..1, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Gaps in milliseconds between requests of a rate: all equal, or those of a Poisson process.
 *
 * @param random - in `[0, 1)`.
 */
export function arrivalGaps(
  perSecond: number,
  distribution: ArrivalDistribution,
  random: () => number,
): () => number {
  const meanMs = 1e3 / perSecond
  return distribution === 'constant' ? () => meanMs : () => -Math.log(1 - random()) * meanMs
}
