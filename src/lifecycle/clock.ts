/**
 * Monotonic milliseconds. Durations and timers come from here, never from wall time.
 *
 * The clock is the system's (CLOCK_MONOTONIC), so that a time taken in the engine can be compared in the control process.
 */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Wall time in milliseconds since the epoch, UTC; only for what a reader sees. */
export function wallMs(): number {
  return Date.now()
}
