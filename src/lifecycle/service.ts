/**
 * Whatever runs and has work in hand. What has none, such as a file, a socket or a session, is closed: `close()`.
 *
 * Where others need what is left until the work is done, it ends in steps. `refuse()`: nothing new is taken from here on.
 * `drain(withinMs)`: that, and it resolves when what was begun is done, or after so long. Then `stop`.
 */
export interface Service {
  /**
   * Takes nothing new, finishes what it has for at most `drainMs`, then ends it hard; what has nothing to drain leaves the parameter out.
   * Idempotent, never rejects.
   */
  stop(drainMs: number): Promise<void>
}
