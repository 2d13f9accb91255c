import { nowMs } from '../lifecycle/clock.js'

/**
 * How far sinks are is written so often: a page of the file each time, and of no use before a crash. What was delivered in the last of
 * these spans before one comes again.
 */
export const settleEveryMs = 250

/** How far each sink is, and what of it is not written yet. */
export class SettledPlaces {
  readonly #known = new Map<string, number>()
  readonly #unwritten = new Map<string, number>()
  #taken: ReadonlyMap<string, number> = new Map()
  #takenMs = Number.NEGATIVE_INFINITY
  #isDue = false

  /** @returns false for what was known already. */
  settle(sink: string, position: number): boolean {
    if ((this.#known.get(sink) ?? 0) >= position) return false
    this.#known.set(sink, position)
    this.#unwritten.set(sink, position)
    if (nowMs() - this.#takenMs >= settleEveryMs) this.#isDue = true
    return true
  }

  /** Of all sinks, written or not. */
  get known(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#known)
  }

  /** What is not written goes with the next commit. */
  makeDue(): void {
    this.#isDue = true
  }

  /** What is to go with a commit; nothing before it is due. */
  take(): ReadonlyMap<string, number> {
    this.#taken = new Map(this.#isDue ? this.#unwritten : [])
    this.#isDue = false
    if (this.#taken.size > 0) this.#takenMs = nowMs()
    return this.#taken
  }

  /** What was taken is in the file. */
  written(): void {
    for (const [sink, position] of this.#taken)
      if (this.#unwritten.get(sink) === position) this.#unwritten.delete(sink)
  }
}
