/** With fewer events in a window they are too few to count: it would say now 0, now twice what there is. */
const fewEvents = 5
/** Events by whose distance the rate is told then, and how late the next one may be. */
const keptEvents = 4
const lateShare = 2.5

/** Events per second over the last `seconds`, counted in buckets of one second; of events that are rarer, by the time between the last. */
export class RateWindow {
  readonly #buckets: number[]
  readonly #lastMs: number[] = []
  #second = 0

  constructor(readonly seconds: number) {
    this.#buckets = new Array<number>(seconds + 1).fill(0)
  }

  add(nowMs: number, count = 1): void {
    if (count === 0) return
    this.#advance(nowMs)
    const index = this.#second % this.#buckets.length
    this.#buckets[index] = (this.#buckets[index] ?? 0) + count
    this.#lastMs.push(nowMs)
    if (this.#lastMs.length > keptEvents) this.#lastMs.shift()
  }

  /** Whole seconds only: the running one is left out. */
  perSecond(nowMs: number): number {
    this.#advance(nowMs)
    const running = this.#buckets[this.#second % this.#buckets.length] ?? 0
    const events = this.#buckets.reduce((sum, n) => sum + n, 0)
    const rare = events < fewEvents ? this.#rarePerSecond(nowMs) : undefined
    return rare ?? (events - running) / this.seconds
  }

  /** Undefined where the events before were not rare, or nothing follows them any more. */
  #rarePerSecond(nowMs: number): number | undefined {
    const [firstMs = 0, lastMs = 0] = [this.#lastMs[0], this.#lastMs.at(-1)]
    const apartMs = (lastMs - firstMs) / (this.#lastMs.length - 1)
    const isRare = apartMs * fewEvents > this.seconds * 1_000
    return isRare && nowMs - lastMs <= lateShare * apartMs ? 1_000 / apartMs : undefined
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
