/** Bounds what is under way: further work begins in the order in which it came, as soon as there is room. */
export class InFlight {
  #under = 0
  readonly #waiting: (() => void)[] = []

  constructor(readonly most: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#under >= this.most) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#under += 1
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      // Who is next takes over the place.
      if (next === undefined) this.#under -= 1
      else next()
    }
  }
}
