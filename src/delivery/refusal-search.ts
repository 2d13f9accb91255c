import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { QueuedRecord } from './record-queue.js'
import type { RecordLink, SendFailure } from './record-link.js'
import { RecordsRefusedError, type Refusal } from './refusal.js'

/** What becomes of records, in the order of each partition. */
export type SearchListener = Readonly<{
  /** Something is sent. @returns what is called once that has settled. */
  sending?: () => () => void
  taken: (records: readonly QueuedRecord[]) => void
  /** It will never be taken. Nothing is sent until that has settled; what it throws ends the search. */
  rejected: (record: QueuedRecord, refusal: Refusal) => Promise<void>
}>

/** A clock that moved by more than this between two sends was set. */
const clockSetMs = 500

type Doubted = Readonly<{ record: QueuedRecord; refusal: Refusal }>
type PartitionState = { takes: boolean; doubted: Doubted[] }

/**
 * One attempt to deliver some records, in which those that the far side refuses for good are found: a refused batch is sent again
 * partition by partition, then in halves, down to single records. Nothing is sent before an older record of its partition
 * has been taken, rejected or doubted.
 *
 * A doubted record, whose refusal may be everybody's, is rejected once the far side takes another of its partition; if it takes none, the
 * attempt fails and all doubted records wait for the next one. As all records of a send bear the time of that send, and no search goes on
 * over a clock that is set, a clock that the far side refuses condemns no record.
 */
export class RefusalSearch {
  readonly #partitions = new Map<string, PartitionState>()
  #clockOffsetMs = wallMs() - nowMs()

  /** @param maxDoubts - records of a partition refused alone after which the others of it are not tried. */
  constructor(
    readonly link: RecordLink,
    readonly deadlineMs: number,
    readonly maxDoubts: number,
    readonly failureOf: (error: unknown) => SendFailure,
    readonly listener: SearchListener,
  ) {}

  /** @throws RecordsRefusedError when records are left that are not taken now; what the link throws. */
  async deliver(records: readonly QueuedRecord[]): Promise<void> {
    await this.#deliver(records)
    const [first] = [...this.#partitions.values()].flatMap(({ doubted }) => doubted)
    if (first !== undefined) throw new RecordsRefusedError(first.refusal)
  }

  async #deliver(records: readonly QueuedRecord[]): Promise<void> {
    const { left, refusal } = await this.#send(records)
    const [only, ...others] = left
    if (refusal === undefined || only === undefined) return
    if (others.length === 0) await this.#judge(only, refusal)
    else for (const part of this.#parts(left)) if (this.#isOpen(part)) await this.#deliver(part)
  }

  #isOpen([first]: readonly QueuedRecord[]): boolean {
    return first !== undefined && this.#stateOf(first).doubted.length < this.maxDoubts
  }

  /** @returns what was not taken, and what the far side has against that. */
  async #send(
    records: readonly QueuedRecord[],
  ): Promise<Readonly<{ left: readonly QueuedRecord[]; refusal?: Refusal }>> {
    this.#lookAtClock()
    const told = new Set<QueuedRecord>()
    const take = (some: readonly QueuedRecord[]) => {
      for (const record of some) told.add(record)
      this.#taken(some)
    }
    const untold = () => records.filter((record) => !told.has(record))
    const settled = this.listener.sending?.()
    try {
      await this.link.send(records, this.deadlineMs, take).finally(settled)
    } catch (error) {
      const { refusal } = this.failureOf(error)
      if (refusal === undefined) throw error
      await this.#rejectDoubted()
      return { left: untold(), refusal }
    }
    const rest = untold()
    if (rest.length > 0) this.#taken(rest)
    await this.#rejectDoubted()
    return { left: [] }
  }

  #taken(records: readonly QueuedRecord[]): void {
    this.listener.taken(records)
    for (const record of records) this.#stateOf(record).takes = true
  }

  /** Others of their partition have been taken: they are at fault. */
  async #rejectDoubted(): Promise<void> {
    for (const { takes, doubted } of this.#partitions.values()) {
      if (!takes) continue
      for (const { record, refusal } of doubted.splice(0)) await this.listener.rejected(record, refusal)
    }
  }

  /** Whole partitions first: of those that were taken the far side knows the very same batch again, and takes it only once. */
  #parts(records: readonly QueuedRecord[]): readonly (readonly QueuedRecord[])[] {
    const byPartition = new Map<string, QueuedRecord[]>()
    for (const record of records) {
      const partition = this.link.partitionOf(record)
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), record])
    }
    if (byPartition.size > 1) return [...byPartition.values()]
    const half = Math.ceil(records.length / 2)
    return [records.slice(0, half), records.slice(half)]
  }

  async #judge(record: QueuedRecord, refusal: Refusal): Promise<void> {
    const { takes, doubted } = this.#stateOf(record)
    if (refusal.certain || takes) await this.listener.rejected(record, refusal)
    else doubted.push({ record, refusal })
  }

  /** What was doubted under another clock is to be tried first under this one. */
  #lookAtClock(): void {
    const offsetMs = wallMs() - nowMs()
    const wasSet = Math.abs(offsetMs - this.#clockOffsetMs) > clockSetMs
    this.#clockOffsetMs = offsetMs
    if (!wasSet) return
    for (const state of this.#partitions.values()) {
      state.takes = false
      const [first] = state.doubted
      if (first !== undefined) throw new RecordsRefusedError(first.refusal)
    }
  }

  #stateOf(record: QueuedRecord): PartitionState {
    const partition = this.link.partitionOf(record)
    const state = this.#partitions.get(partition) ?? { takes: false, doubted: [] }
    this.#partitions.set(partition, state)
    return state
  }
}
