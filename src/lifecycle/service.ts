/** Whatever runs and has work in hand. What has none, such as a file, a socket or a session, is closed: `close()`. */
export interface Service {
  /**
   * Takes nothing new, finishes what it has for at most `drainMs`, then ends it hard; what has nothing to drain leaves the parameter out.
   * Idempotent, never rejects.
   */
  stop(drainMs: number): Promise<void>
}
