export type BackoffLimits = Readonly<{ baseMs: number; capMs: number }>

/**
 * Full-jitter exponential back-off: uniform in `[0, min(cap, base * 2^attempt))`, but never under a tenth of that bound.
 *
 * @param attempt - 0 for the first retry.
 * @param random - in `[0, 1)`.
 * @returns milliseconds to wait.
 * @see "Exponential Backoff And Jitter", AWS Architecture Blog, 2015
 */
export function backoffMs(
  attempt: number,
  limits: BackoffLimits,
  random: () => number = Math.random,
): number {
  const boundMs = Math.min(limits.capMs, limits.baseMs * 2 ** Math.min(attempt, 30))
  return boundMs * Math.max(0.1, random())
}
