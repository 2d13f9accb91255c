/** Events per second over the last `seconds`, counted in buckets of one second. */
export class RateWindow {
  readonly #buckets: number[]
  #second = 0

  constructor(readonly seconds: number) {
    this.#buckets = new Array<number>(seconds + 1).fill(0)
  }

  add(nowMs: number, count = 1): void {
    this.#advance(nowMs)
    const index = this.#second % this.#buckets.length
    this.#buckets[index] = (this.#buckets[index] ?? 0) + count
  }

  /** Whole seconds only: the running one is left out. */
  perSecond(nowMs: number): number {
    this.#advance(nowMs)
    const running = this.#buckets[this.#second % this.#buckets.length] ?? 0
    return (this.#buckets.reduce((sum, n) => sum + n, 0) - running) / this.seconds
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000)
    const steps = Math.min(second - this.#second, this.#buckets.length)
    for (let step = 1; step <= steps; step += 1) {
      this.#buckets[(second - steps + step) % this.#buckets.length] = 0
    }
    this.#second = Math.max(this.#second, second)
  }
}

/** Quantiles of the last `capacity` values. */
export class QuantileWindow {
  readonly #values: number[] = []
  #next = 0

  constructor(readonly capacity: number) {}

  /** Values that it holds. */
  get size(): number {
    return this.#values.length
  }

  add(value: number): void {
    this.#values[this.#next] = value
    this.#next = (this.#next + 1) % this.capacity
  }

  clear(): void {
    this.#values.length = 0
    this.#next = 0
  }

  /** @param q - 0..1. @returns nothing while the window is empty. */
  quantiles<const Q extends readonly number[]>(...q: Q): { [K in keyof Q]: number } | undefined {
    if (this.#values.length === 0) return undefined
    const sorted = [...this.#values].sort((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
    return q.map(at) as { [K in keyof Q]: number }
  }
}
