import { backoffMs } from '../lifecycle/backoff.js'

/**
 * Cameras lock an account after three to ten wrong passwords within minutes, for half an hour: these are some four in the first ten
 * minutes, and eight an hour then.
 */
const limits = { baseMs: 60_000, capMs: 600_000 }

/**
 * How long a camera is left alone that has refused a login.
 *
 * @param refusals - in a row before this one.
 * @param random - in `[0, 1)`.
 * @returns milliseconds: 30 s to a minute at first, 5 to 10 min in the end.
 */
export function refusedLoginMs(refusals: number, random: () => number = Math.random): number {
  return backoffMs(refusals, limits, () => (1 + random()) / 2)
}
