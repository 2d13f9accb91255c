import { nowMs } from './clock.js'

/** The moment by which something has to be over; handed down, so that all that share it share one budget. */
export class Deadline {
  readonly #atMs: number

  constructor(inMs: number) {
    this.#atMs = nowMs() + inMs
  }

  /** 0 once it has passed. */
  get leftMs(): number {
    return Math.max(0, this.#atMs - nowMs())
  }
}
