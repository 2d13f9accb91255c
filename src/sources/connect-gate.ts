/** Lets at most `limit` decoders start at once, in the order they asked; shared by all cameras of a process. */
export class ConnectGate {
  #inside = 0
  #peak = 0
  readonly #waiting: (() => void)[] = []

  constructor(readonly limit: number) {}

  get inside(): number {
    return this.#inside
  }

  /** Most that were inside at once. */
  get peak(): number {
    return this.#peak
  }

  /**
   * Calls `enter` when it is the caller's turn, never before this call has returned.
   *
   * @returns leaves the gate, or the queue before it. Idempotent.
   */
  request(enter: () => void): () => void {
    let place: 'queue' | 'inside' | 'left' = 'queue'
    const admitted = () => {
      place = 'inside'
      this.#inside += 1
      this.#peak = Math.max(this.#peak, this.#inside)
      enter()
    }
    this.#waiting.push(admitted)
    queueMicrotask(() => this.#admit())
    return () => {
      if (place === 'queue') this.#waiting.splice(this.#waiting.indexOf(admitted), 1)
      if (place === 'inside') this.#inside -= 1
      place = 'left'
      queueMicrotask(() => this.#admit())
    }
  }

  #admit(): void {
    while (this.#inside < this.limit) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      next()
    }
  }
}
