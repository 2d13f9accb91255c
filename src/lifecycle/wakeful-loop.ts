import { nowMs } from './clock.js'

/**
 * Keeps the event loop turning, instead of sleeping, while something is awaited that comes within microseconds.
 *
 * A loop that sleeps loses its core: to be woken takes about as long as a very short run in another thread, and what it goes on with
 * has left the caches. It turns for at most `forMs` after the last {@link begin}, and not at all while nothing is awaited.
 */
export class WakefulLoop {
  #awaited = 0
  #untilMs = 0
  #turning = false

  /** @param forMs - what takes longer than this is waited for asleep. */
  constructor(readonly forMs: number) {}

  /** Something is awaited; {@link end} is called once for it. */
  begin(): void {
    this.#awaited += 1
    this.#untilMs = nowMs() + this.forMs
    if (this.#turning) return
    this.#turning = true
    setImmediate(this.#turn)
  }

  end(): void {
    this.#awaited -= 1
  }

  readonly #turn = (): void => {
    this.#turning = this.#awaited > 0 && nowMs() < this.#untilMs
    if (this.#turning) setImmediate(this.#turn)
  }
}
