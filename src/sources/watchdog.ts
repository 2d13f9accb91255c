import { nowMs } from '../lifecycle/clock.js'

/** Calls back once when nothing has been fed to it for a while. One timer, whatever the frame rate. */
export class Watchdog {
  #fedMs = 0
  #timer: NodeJS.Timeout | undefined

  /** @param furtherMs - asked before it calls back: for how much longer to wait before it asks again; 0 not at all. */
  constructor(
    readonly starved: (silentMs: number) => void,
    readonly furtherMs: (silentMs: number) => number = () => 0,
  ) {}

  /** Starts over with a new limit. */
  arm(limitMs: number): void {
    this.disarm()
    this.#fedMs = nowMs()
    this.#sleep(limitMs, limitMs)
  }

  feed(): void {
    this.#fedMs = nowMs()
  }

  disarm(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #sleep(forMs: number, limitMs: number): void {
    this.#timer = setTimeout(() => {
      const silentMs = nowMs() - this.#fedMs
      if (silentMs < limitMs) return this.#sleep(Math.max(1, limitMs - silentMs), limitMs)
      const furtherMs = this.furtherMs(silentMs)
      if (furtherMs > 0) this.#sleep(furtherMs, limitMs)
      else this.starved(silentMs)
    }, forMs)
  }
}
