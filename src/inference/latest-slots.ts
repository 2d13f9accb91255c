/** What the scheduler queues: an item of a stream. Cameras are streams; so are clients of the API. */
export interface QueueItem {
  readonly streamId: string
  /** Monotonic time at which it began to wait. */
  readonly enqueuedMs: number
}

/**
 * One waiting item per stream, the newest. Streams are served in the order in which they began to wait, so that each gets its
 * turn however fast another one delivers: a newer item takes the place its stream already has in the line.
 */
export class LatestSlots<T extends QueueItem> {
  /** A map keeps the order of its keys, and replacing a value keeps the place. */
  readonly #line = new Map<string, Readonly<{ item: T; sinceMs: number }>>()

  get size(): number {
    return this.#line.size
  }

  /** When the stream at the head of the line began to wait; its item may be younger. */
  get waitingSinceMs(): number | undefined {
    for (const place of this.#line.values()) return place.sinceMs
    return undefined
  }

  /** @returns the item it replaced, which now belongs to the caller. */
  put(item: T): T | undefined {
    const place = this.#line.get(item.streamId)
    this.#line.set(item.streamId, { item, sinceMs: place?.sinceMs ?? item.enqueuedMs })
    return place?.item
  }

  /** Takes up to `count` items, from the head of the line. */
  take(count: number): T[] {
    const taken: T[] = []
    for (const [streamId, { item }] of this.#line) {
      if (taken.length === count) break
      this.#line.delete(streamId)
      taken.push(item)
    }
    return taken
  }

  remove(streamId: string): T | undefined {
    const place = this.#line.get(streamId)
    this.#line.delete(streamId)
    return place?.item
  }
}
