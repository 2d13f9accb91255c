import { KeptText } from '../messages/kept-text.js'
import type { OrderKey } from './order-key.js'
import type { RecentRange } from './recent-range.js'

/** A result as JSON. The text is overwritten once the entry has left its window. */
export type RecentEntry = Readonly<{ key: OrderKey; json: KeptText }>

/** Newest results of one camera in order, bounded; the oldest go. */
export class RecentWindow {
  #entries: RecentEntry[] = []
  /** Entries before this are gone; the array is cut only now and then. */
  #first = 0

  constructor(readonly capacity: number) {}

  get length(): number {
    return this.#entries.length - this.#first
  }

  add(key: OrderKey, json: Uint8Array): void {
    const at = this.#lowerBound(key)
    const same = this.#entries[at]
    if (same?.key === key) {
      same.json.write(json)
      return
    }
    const full = this.length === this.capacity
    if (full && at === this.#first) return
    const entry = { key, json: (full ? this.#entries[this.#first]?.json : undefined) ?? new KeptText() }
    entry.json.write(json)
    if (at === this.#entries.length) this.#entries.push(entry)
    else this.#entries.splice(at, 0, entry)
    if (full) this.#first += 1
    this.#compact()
  }

  /** Entries of the range, newest first. */
  *newestFirst(range: RecentRange): Generator<RecentEntry> {
    for (let at = this.#lowerBound(range.below) - 1; at >= this.#first; at -= 1) {
      const entry = this.#entries[at]
      if (entry === undefined || entry.key < range.atLeast) return
      yield entry
    }
  }

  /** Position of the first entry that is not before `key`. */
  #lowerBound(key: OrderKey): number {
    let low = this.#first
    let high = this.#entries.length
    const newest = this.#entries[high - 1]
    if (newest !== undefined && newest.key < key) return high
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle]?.key ?? '') < key) low = middle + 1
      else high = middle
    }
    return low
  }

  #compact(): void {
    if (this.#first < 64 || this.#first * 2 < this.#entries.length) return
    this.#entries = this.#entries.slice(this.#first)
    this.#first = 0
  }
}
