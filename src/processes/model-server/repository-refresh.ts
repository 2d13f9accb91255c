/** Asks control to fetch what is new of the repositories in object stores, and waits for it. */
export class RepositoryRefresh {
  readonly #waiting = new Map<number, () => void>()
  #last = 0

  /** @param send - tells control; it answers with the same number. */
  constructor(readonly send: (refreshId: number) => void) {}

  /** Resolves when it is done, also where a store is away. */
  ask(): Promise<void> {
    const refreshId = (this.#last += 1)
    return new Promise((resolve) => {
      this.#waiting.set(refreshId, resolve)
      this.send(refreshId)
    })
  }

  done(refreshId: number): void {
    this.#waiting.get(refreshId)?.()
    this.#waiting.delete(refreshId)
  }
}
