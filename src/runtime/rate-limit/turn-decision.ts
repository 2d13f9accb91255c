import { type Claim, poolOf } from './claims.js'

/** A claim that waits. The one with the lowest `start` is next; of equals the one that came first. */
export type WaitingClaim = Claim & Readonly<{ start: number }>

/**
 * Those whose turn it is, in order, with what is free. A claim that does not fit holds back those behind it that need one of its
 * resources, so that a large one is not passed over for ever; others go past it.
 *
 * @param waiting - in the order of arrival.
 * @param free - by the name of the pool.
 */
export function claimsToGrant<T extends WaitingClaim>(
  waiting: readonly T[],
  free: ReadonlyMap<string, number>,
): readonly T[] {
  const left = new Map(free)
  const held = new Set<string>()
  return waiting
    .toSorted((a, b) => a.start - b.start)
    .filter(({ needs }) => {
      const fits = needs.every(
        (need) => !held.has(poolOf(need)) && need.count <= (left.get(poolOf(need)) ?? 0),
      )
      for (const need of needs) {
        const pool = poolOf(need)
        if (fits) left.set(pool, (left.get(pool) ?? 0) - need.count)
        else held.add(pool)
      }
      return fits
    })
}
