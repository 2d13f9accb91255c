import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs } from '../lifecycle/clock.js'

/** Deaths inside this window make the next restart wait longer. */
const windowMs = 60_000
const crashLoopDeaths = 5
const restartBackoff = { baseMs: 100, capMs: 30_000 }

/** How often a process ended within a minute, which decides how long it is away. */
export class RecentDeaths {
  #atMs: number[] = []

  constructor(readonly clock: () => number = nowMs) {}

  get count(): number {
    return this.#atMs.length
  }

  /** It ended once more. @returns how often within a minute. */
  add(): number {
    const now = this.clock()
    this.#atMs = [...this.#atMs.filter((atMs) => now - atMs < windowMs), now]
    return this.count
  }

  forget(): void {
    this.#atMs = []
  }

  /** Until it is started again: at once after the first. */
  get waitMs(): number {
    const { count } = this
    return count <= 1 ? 0 : backoffMs(count >= crashLoopDeaths ? 10 : count, restartBackoff)
  }

  /** For people. */
  get text(): string {
    return `${this.count} deaths in ${windowMs / 1_000} s`
  }
}
