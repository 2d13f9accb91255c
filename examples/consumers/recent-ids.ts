/** Ids seen lately, bounded: enough to recognise the repetitions that retries make. */
export class RecentIds {
  readonly #ids = new Set<string>()

  constructor(readonly capacity: number) {}

  /** @returns whether the id is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false
    this.#ids.add(id)
    if (this.#ids.size > this.capacity) {
      // A set keeps its order of insertion, so the first is the oldest.
      for (const oldest of this.#ids) {
        this.#ids.delete(oldest)
        break
      }
    }
    return true
  }
}
