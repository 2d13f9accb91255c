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

/** When requests are due. */
export type Arrivals =
  | Readonly<{ perSecond: number; distribution: ArrivalDistribution; seed: number }>
  /** Milliseconds between one request and the next, as they were recorded: at least one that is above 0. From the first again after the last. */
  | Readonly<{ gapsMs: readonly number[] }>

/** Gaps in milliseconds between requests: all equal, those of a Poisson process, or recorded ones. */
export function arrivalGaps(arrivals: Arrivals): () => number {
  if ('gapsMs' in arrivals) {
    const { gapsMs } = arrivals
    let next = 0
    return () => gapsMs[next++ % gapsMs.length]!
  }
  const { perSecond, distribution, seed } = arrivals
  const meanMs = 1e3 / perSecond
  const random = seededRandom(seed)
  return distribution === 'constant' ? () => meanMs : () => -Math.log(1 - random()) * meanMs
}
