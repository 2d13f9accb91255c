/** Times, as many as there may be, and what they amount to. */
export class Latencies {
  #values = new Float64Array(1_024)
  #count = 0
  #sum = 0

  get count(): number {
    return this.#count
  }

  /** 0 without any. */
  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count
  }

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const wider = new Float64Array(this.#values.length * 2)
      wider.set(this.#values)
      this.#values = wider
    }
    this.#values[this.#count++] = value
    this.#sum += value
  }

  addAll(other: Latencies): void {
    for (let index = 0; index < other.#count; index++) this.add(other.#values[index]!)
  }

  /** In order. */
  sorted(): Float64Array {
    return this.#values.slice(0, this.#count).sort()
  }
}

/**
 * A quantile of ordered values as perf_analyzer takes it: the value at the nearest place, no mean of two.
 *
 * @param of - 0..1.
 */
export function quantileOf(sorted: Float64Array, of: number): number {
  if (sorted.length === 0) return 0
  return sorted[Math.round(of * (sorted.length - 1))]!
}

/** What people ask of latencies, in the unit of the values. */
export type LatencySummary = Readonly<{
  mean: number
  min: number
  p50: number
  p90: number
  p95: number
  p99: number
  max: number
}>

export function latencySummary(latencies: Latencies, scale = 1): LatencySummary {
  const sorted = latencies.sorted()
  const at = (of: number) => quantileOf(sorted, of) * scale
  return {
    mean: latencies.mean * scale,
    min: at(0),
    p50: at(0.5),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    max: at(1),
  }
}
