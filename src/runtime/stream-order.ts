type Place = { settle: (() => void) | undefined }

/**
 * Lets runs end in any order and their outcomes be told in the order in which they started, per stream: two instances may work
 * on one camera at a time, and its newest frame must not be reported first.
 */
export class StreamOrder {
  readonly #lines = new Map<string, Place[]>()

  /** Takes the next place of a stream. @returns to be called once with what tells the outcome; it runs when its turn has come. */
  enter(streamId: string): (settle: () => void) => void {
    const place: Place = { settle: undefined }
    const line = this.#lines.get(streamId)
    if (line === undefined) this.#lines.set(streamId, [place])
    else line.push(place)
    return (settle) => {
      place.settle = settle
      this.#flush(streamId)
    }
  }

  #flush(streamId: string): void {
    const line = this.#lines.get(streamId)
    while (line?.[0]?.settle !== undefined) line.shift()?.settle?.()
    if (line?.length === 0) this.#lines.delete(streamId)
  }
}
