import { InternalError } from '../../errors.js'
import type { BatchSizes, SizeCost, SizesInUse } from '../batch-sizes.js'
import type { InstanceSizes } from './slot.js'

export type WarmSizesHost = Readonly<{
  /** All, ascending. */
  sizes: BatchSizes
  /** Runs a size for the first time on an instance, which does nothing else meanwhile. @throws why it does not run */
  warm: (instance: number, size: number) => Promise<SizeCost>
  /** Whether the instance of that number is up. */
  isUp: (instance: number) => boolean
  /** {@link WarmSizes.inUse} is another. */
  onChange: () => void
  /** A size does not run: it is left out, with all that are larger. */
  onLeftOut: (sizes: BatchSizes, error: unknown) => void
}>

/** @throws why it does not run */
export async function runSize(sizes: InstanceSizes | undefined, size: number): Promise<SizeCost> {
  if (sizes === undefined) throw new InternalError('an instance that takes batches as they are warms no size')
  return sizes.run(size)
}

/**
 * Which sizes of batches are warm in all instances of a model. Each takes a GPU seconds for the first time, so that the model begins with the
 * smallest, and the others come one after another, on one instance at a time: the others serve meanwhile.
 */
export class WarmSizes {
  /** Ascending. What every instance that is up has: batches may have these sizes. */
  usable: readonly SizeCost[] = []
  #sizes: BatchSizes
  /** By the number of an instance: how many it has. */
  readonly #counts = new Map<number, number>()
  readonly #costs = new Map<number, SizeCost>()
  /** Of instances that take no batches yet. */
  readonly #started = new Map<number, readonly SizeCost[]>()
  #goesOn = false
  #isWarming = false

  constructor(readonly host: WarmSizesHost) {
    this.#sizes = host.sizes
  }

  get inUse(): SizesInUse {
    return { warm: this.usable, toCome: this.#sizes.slice(this.usable.length) }
  }

  /**
   * An instance has started, with the first sizes warm. It is not to take batches yet: those that are usable by now and that it lacks are
   * warmed first.
   *
   * @throws why one does not run
   */
  async started(instance: number, { warm, run }: InstanceSizes): Promise<void> {
    const own = [...warm]
    while (own.length < this.usable.length) own.push(await run(this.#sizes[own.length]!))
    this.#started.set(instance, own)
  }

  /** An instance that has started takes batches; without {@link started} it takes them as they are, and waits for no size. */
  joins(instance: number): void {
    const own = this.#started.get(instance)
    this.#started.delete(instance)
    if (own === undefined) {
      this.#counts.delete(instance)
      return
    }
    for (const cost of own) this.#keep(cost)
    this.#counts.set(instance, own.length)
    this.#grow()
    void this.#warmAll()
  }

  /** From now on the sizes that are to come are warmed. */
  goOn(): void {
    this.#goesOn = true
    void this.#warmAll()
  }

  /** Never rejects. */
  async #warmAll(): Promise<void> {
    if (this.#isWarming) return
    this.#isWarming = true
    while (this.#goesOn) {
      const next = this.#next()
      if (next === undefined) break
      await this.#warm(...next)
    }
    this.#isWarming = false
  }

  async #warm(instance: number, count: number): Promise<void> {
    const size = this.#sizes[count]!
    try {
      this.#keep(await this.host.warm(instance, size))
      this.#counts.set(instance, count + 1)
    } catch (error) {
      if (this.host.isUp(instance)) this.#leaveOut(count, error)
      // One that ended joins again.
      else this.#counts.delete(instance)
    }
    this.#grow()
  }

  #leaveOut(count: number, error: unknown): void {
    const leftOut = this.#sizes.slice(count)
    this.#sizes = this.#sizes.slice(0, count)
    this.host.onLeftOut(leftOut, error)
    this.host.onChange()
  }

  /** Each instance has its own, which are much alike: those of the first are told. */
  #keep(cost: SizeCost): void {
    if (!this.#costs.has(cost.size)) this.#costs.set(cost.size, cost)
  }

  /** The instance that is furthest behind, and how many it has. */
  #next(): readonly [instance: number, count: number] | undefined {
    const [next] = [...this.#counts].sort(([, a], [, b]) => a - b)
    return next === undefined || next[1] >= this.#sizes.length ? undefined : next
  }

  #grow(): void {
    const warm = Math.min(this.#sizes.length, ...this.#counts.values())
    if (this.#counts.size === 0 || warm <= this.usable.length) return
    this.usable = this.#sizes.slice(0, warm).map((size) => this.#costs.get(size)!)
    this.host.onChange()
  }
}
