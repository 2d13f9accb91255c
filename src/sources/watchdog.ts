import { nowMs } from '../lifecycle/clock.js'

/** Calls back once when nothing has been fed to it for a while. One timer, whatever the frame rate. */
export class Watchdog {
  #fedMs = 0
  #timer: NodeJS.Timeout | undefined

  /** @param excused - asked before it calls back: whether to wait for the same time once more. */
  constructor(
    readonly starved: (silentMs: number) => void,
    readonly excused: (silentMs: number) => boolean = () => false,
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
      if (silentMs < limitMs) this.#sleep(Math.max(1, limitMs - silentMs), limitMs)
      else if (this.excused(silentMs)) this.#sleep(limitMs, limitMs)
      else this.starved(silentMs)
    }, forMs)
  }
}
