import type { Log } from '../lifecycle/log.js'

/**
 * Sizes of batches where a session takes one shape only, as on CUDA: each size has sessions of its own, and a batch is filled up to the
 * next one. Ascending, without doubles; the last is the largest batch.
 */
export type BatchSizes = readonly number[]

/** What a size takes. */
export type SizeCost = Readonly<{
  size: number
  /** A run, once it is warm. */
  ms: number
  /**
   * Memory of the card for its session, plans and buffers, as the card told it in one instance; what other programs took meanwhile is in it.
   * Absent: nothing tells.
   */
  memoryBytes?: number
}>

/** How far a model is with sizes that have a session each. */
export type SizesInUse = Readonly<{
  /** Those that batches are filled up to now, and what each takes. */
  warm: readonly SizeCost[]
  /** Those that have not run yet: batches get these sizes later. */
  toCome: BatchSizes
}>

/** Between one size and the next: at most three quarters of a run are rows that were added, and few sizes need memory. */
const step = 4

/** 1, 4, 16 and so on, and the largest. */
export function usualSizes(largest: number): BatchSizes {
  const sizes: number[] = []
  for (let size = 1; size < largest; size *= step) sizes.push(size)
  return [...sizes, largest]
}

/** What is asked for, and the largest batch, which must have a size. Nothing asked for: {@link usualSizes}. */
export function sizesUpTo(largest: number, wanted: readonly number[]): BatchSizes {
  if (wanted.length === 0) return usualSizes(largest)
  const below = wanted.filter((size) => size < largest)
  return [...new Set(below), largest].sort((a, b) => a - b)
}

/** What a batch of so many is filled up to; itself where it is larger than the largest. */
export function sizeFor(sizes: BatchSizes, items: number): number {
  return sizes.find((size) => size >= items) ?? items
}

/**
 * How many of those that wait should run next: filling up a large batch is weighed against having some wait for a second, smaller one.
 * Chosen is what ends the waiting of all soonest in the mean, if nothing else came: by dynamic programming over what is left after each run.
 */
export class RunChoice {
  /** By how many wait, up to the largest size. */
  readonly #items: readonly number[]

  /** @param costs - of each size, at least one. */
  constructor(costs: readonly SizeCost[]) {
    const largest = Math.max(...costs.map(({ size }) => size))
    /** Sum of the times until each of so many is answered. */
    const waits = [0]
    const items = [0]
    for (let waiting = 1; waiting <= largest; waiting += 1) {
      let [best, chosen] = [Infinity, waiting]
      // Where two choices wait as long, the larger run leaves less behind.
      for (const { size, ms } of costs) {
        const taken = Math.min(size, waiting)
        const sum = waiting * ms + waits[waiting - taken]!
        if (sum < best || (sum === best && taken > chosen)) [best, chosen] = [sum, taken]
      }
      waits.push(best)
      items.push(chosen)
    }
    this.#items = items
  }

  /** @param waiting - at least 1. @returns 1 to `waiting`, at most the largest size. */
  itemsOf(waiting: number): number {
    return this.#items[Math.min(waiting, this.#items.length - 1)]!
  }
}

/** Tells what the sizes of a model take, once all have run. */
export function tellSizes(log: Log, model: string, sizes: readonly SizeCost[]): void {
  const texts = sizes.map(({ size, ms, memoryBytes }) => {
    const memory = memoryBytes === undefined ? '' : `, ${Math.round(memoryBytes / 1024 ** 2)} MiB`
    return `${size}: ${ms.toFixed(1)} ms${memory}`
  })
  log.info({ model, sizes: texts }, 'sizes of batches are warm')
}

/** Tells that sizes of batches do not run, though they have a session: batches stay smaller. */
export function warnOfColdSizes(log: Log, model: string, sizes: BatchSizes, error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error)
  log.warn({ model, sizes, reason }, 'sizes of batches do not run: batches stay smaller')
}
