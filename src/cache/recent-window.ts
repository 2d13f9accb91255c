import type { DetectionsMessage } from '../events/detections-message.js'
import type { OrderKey } from './order-key.js'
import type { RecentRange } from './recent-range.js'

export type RecentEntry = Readonly<{ key: OrderKey; message: DetectionsMessage }>

/** Newest results of one camera in order, bounded; the oldest go. */
export class RecentWindow {
  #entries: RecentEntry[] = []
  /** Entries before this are gone; the array is cut only now and then. */
  #first = 0

  constructor(readonly capacity: number) {}

  get length(): number {
    return this.#entries.length - this.#first
  }

  add(entry: RecentEntry): void {
    const at = this.#lowerBound(entry.key)
    if (this.#entries[at]?.key === entry.key) this.#entries[at] = entry
    else if (at === this.#entries.length) this.#entries.push(entry)
    else this.#entries.splice(at, 0, entry)
    if (this.length > this.capacity) this.#first += 1
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
