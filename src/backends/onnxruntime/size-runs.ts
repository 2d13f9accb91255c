import type { SizeCost } from '../../runtime/batch-sizes.js'
import { nowMs } from '../../lifecycle/clock.js'
import { type CardMemory, takenBy } from './card-memory.js'
import type { Sessions } from './sessions.js'

/** Runs of a size by whose shortest it is weighed. */
const timedRuns = 2

/** Which sizes of batches have run in a thread, and what they take. */
export class SizeRuns {
  /** What the first run of each took of the card's memory, as far as that is known. */
  readonly #taken = new Map<number, number | undefined>()

  constructor(
    readonly sessions: Pick<Sessions, 'rowsFor' | 'openedBytes'>,
    /** Of the card, where what the model takes of it is to be known. */
    readonly memory: CardMemory | undefined,
  ) {}

  /** Rows that a batch of so many runs with: of a size that has run, unless none of these is large enough. */
  rowsFor(items: number): number {
    let rows = Infinity
    for (const size of this.#taken.keys()) if (size >= items && size < rows) rows = size
    return rows === Infinity ? this.sessions.rowsFor(items) : rows
  }

  /** Runs a batch of that many rows. @throws what the run throws */
  async run<T>(rows: number, work: () => Promise<T>): Promise<T> {
    if (this.#taken.has(rows)) return work()
    const { result, bytes } = await takenBy(this.memory, work)
    this.#taken.set(rows, bytes)
    return result
  }

  /** What a run of a size takes, once it has run: the shortest of a few. @throws what the work throws */
  async timeOf(size: number, work: () => Promise<unknown>): Promise<number> {
    if (!this.#taken.has(size)) await this.run(size, work)
    const times: number[] = []
    while (times.length < timedRuns) {
      const beganMs = nowMs()
      await work()
      times.push(nowMs() - beganMs)
    }
    return Math.min(...times)
  }

  /** The same, with what it takes of the card's memory. @throws what the work throws */
  async costOf(size: number, work: () => Promise<unknown>): Promise<SizeCost> {
    const ms = await this.timeOf(size, work)
    const bytes = this.#taken.get(size)
    if (bytes === undefined) return { size, ms }
    return { size, ms, memoryBytes: Math.round(bytes + (this.sessions.openedBytes ?? 0)) }
  }
}
