/** What the scheduler queues: an item of a stream. Cameras are streams; so are clients of the API. */
export interface QueueItem {
  readonly streamId: string
  /** Monotonic time at which it began to wait. */
  readonly enqueuedMs: number
}

type Place<T> = Readonly<{ item: T; sinceMs: number }>

/**
 * One waiting item per stream, the newest. The stream whose turn was longest ago is served first, so that each gets its turn
 * however fast another one delivers, and whatever order they arrive in.
 */
export class LatestSlots<T extends QueueItem> {
  /** In the order in which the streams began to wait: a map keeps that order, and replacing a value keeps the place. */
  readonly #line = new Map<string, Place<T>>()
  /** Number of the turn each stream had last. */
  readonly #lastTurn = new Map<string, number>()
  #turns = 0

  get size(): number {
    return this.#line.size
  }

  /** When the stream that waits longest began to; its item may be younger. */
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

  /** Takes up to `count` items: of streams that never had a turn, then of those that had theirs longest ago. */
  take(count: number): T[] {
    const waiting = [...this.#line.keys()]
    const chosen =
      waiting.length <= count
        ? waiting
        : waiting.sort((a, b) => this.#turnOf(a) - this.#turnOf(b)).slice(0, count)
    return chosen.flatMap((streamId) => {
      const place = this.#line.get(streamId)
      this.#line.delete(streamId)
      this.#lastTurn.set(streamId, ++this.#turns)
      return place === undefined ? [] : [place.item]
    })
  }

  /** Forgets a stream. @returns its waiting item, which now belongs to the caller. */
  remove(streamId: string): T | undefined {
    const place = this.#line.get(streamId)
    this.#line.delete(streamId)
    this.#lastTurn.delete(streamId)
    return place?.item
  }

  #turnOf(streamId: string): number {
    return this.#lastTurn.get(streamId) ?? 0
  }
}
