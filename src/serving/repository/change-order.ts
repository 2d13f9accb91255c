import { unlessAborted } from '../../lifecycle/delay.js'

/** Models that a change takes hold of, by name. */
export type Claims = Readonly<{
  /** What it loads or unloads: no other change has to do with it meanwhile. */
  changes: readonly string[]
  /** What it needs, and loads where it is not: other changes may need it too. */
  needs: readonly string[]
}>

/** Claims of a change that is done alone: after all before it, and before all behind it. */
export const everything = 'everything'

type Held = Claims | typeof everything

type Entry = {
  readonly claimsOf: () => Held
  /** As it was found when it was last looked at; absent: it was not. */
  held?: Held
  go(): void
}

/**
 * Changes of models in the order in which they were asked for, where they have to do with the same models: each sees the state that the
 * one before left. Others are done side by side.
 */
export class ChangeOrder {
  /** First come first. */
  readonly #waiting: Entry[] = []
  readonly #running = new Set<Entry>()
  readonly #underWay = new Set<Promise<unknown>>()

  /** @param closing - once aborted, what waits is not begun and rejects with the reason; what has begun goes on. */
  constructor(readonly closing: AbortSignal) {}

  /** @param claimsOf - asked again before the change begins, since one before may have changed what it needs. */
  take<T>(claimsOf: () => Held, change: () => Promise<T>): Promise<T> {
    return this.beside(this.#take(claimsOf, change))
  }

  /** Counts something as under way that has an order of its own. @returns the same */
  beside<T>(work: Promise<T>): Promise<T> {
    const over = work
      .catch(() => undefined)
      .then(() => {
        this.#underWay.delete(over)
      })
    this.#underWay.add(over)
    return work
  }

  /** Resolves once nothing is under way. Never rejects. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  async #take<T>(claimsOf: () => Held, change: () => Promise<T>): Promise<T> {
    const entry: Entry = { claimsOf, go: () => undefined }
    const turn = new Promise<void>((resolve) => (entry.go = resolve))
    this.#waiting.push(entry)
    this.#beginWhatCan()
    try {
      await unlessAborted(turn, this.closing)
      return await change()
    } finally {
      this.#running.delete(entry)
      const place = this.#waiting.indexOf(entry)
      if (place >= 0) this.#waiting.splice(place, 1)
      this.#beginWhatCan()
    }
  }

  #beginWhatCan(): void {
    const before = new Taken()
    for (const { held } of this.#running) before.add(held)
    const left: Entry[] = []
    for (const entry of this.#waiting) {
      if (entry.held === undefined || !before.isAtOddsWith(entry.held)) entry.held = entry.claimsOf()
      if (before.isAtOddsWith(entry.held)) left.push(entry)
      else {
        this.#running.add(entry)
        entry.go()
      }
      before.add(entry.held)
    }
    this.#waiting.splice(0, this.#waiting.length, ...left)
  }
}

/** What changes that come first have taken hold of. */
class Taken {
  readonly #changed = new Set<string>()
  readonly #needed = new Set<string>()
  #isAny = false
  #isAll = false

  add(held: Held | undefined): void {
    if (held === undefined) return
    this.#isAny = true
    if (held === everything) this.#isAll = true
    else {
      for (const name of held.changes) this.#changed.add(name)
      for (const name of held.needs) this.#needed.add(name)
    }
  }

  isAtOddsWith(held: Held): boolean {
    if (held === everything) return this.#isAny
    return (
      this.#isAll ||
      held.changes.some((name) => this.#changed.has(name) || this.#needed.has(name)) ||
      held.needs.some((name) => this.#changed.has(name))
    )
  }
}
