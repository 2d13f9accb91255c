/** Work of one key runs one after another, in the order it was asked for; that of others goes on beside it. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Settles like `work`, which begins once all earlier work of the key has settled. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const result = before.then(work)
    const settled = result.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, settled)
    try {
      return await result
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    }
  }
}
