import type { Gap, PlacedRecord } from './record.js'

/**
 * Told once of each record, in the order in which they were accepted.
 *
 * @param isStored - false: it is lost with this process.
 */
export type OnPublished = (record: PlacedRecord, isStored: boolean) => void

/** A record that is not committed. Its place, and whom to tell. */
export class WaitingRecord {
  #published: OnPublished | undefined

  constructor(
    readonly record: PlacedRecord,
    /** Otherwise it only waits for those before it. */
    readonly isKept: boolean,
    /** That it tells. */
    readonly gap: Gap | undefined,
    published: OnPublished,
  ) {
    this.#published = published
  }

  /** The first time alone. */
  publish(isStored: boolean): void {
    const published = this.#published
    this.#published = undefined
    published?.(this.record, isStored && this.isKept)
  }
}

/** Records that wait to be committed, oldest first. */
export class WaitingRecords {
  #records: WaitingRecord[] = []
  #bytes = 0

  get length(): number {
    return this.#records.length
  }

  push(waiting: WaitingRecord): void {
    this.#records.push(waiting)
    this.#bytes += waiting.record.value.length
  }

  /** The oldest, at most so many and so large; one at least while there is any. */
  take(most: Readonly<{ records: number; bytes: number }>): readonly WaitingRecord[] {
    let bytes = 0
    const end = this.#records.findIndex(({ record }, index) => {
      bytes += record.value.length
      return index >= most.records || (index > 0 && bytes > most.bytes)
    })
    return this.#shift(end < 0 ? this.#records.length : end)
  }

  /** What was taken goes before all others again. */
  putBack(taken: readonly WaitingRecord[]): void {
    this.#records.unshift(...taken)
    this.#bytes += bytesOf(taken)
  }

  /** Without being committed. */
  publish(): void {
    for (const waiting of this.#records) waiting.publish(false)
  }

  /** @returns the oldest, which go. */
  bound(maxBytes: number): readonly WaitingRecord[] {
    let excess = 0
    for (let bytes = this.#bytes; bytes > maxBytes; excess += 1)
      bytes -= this.#records[excess]?.record.value.length ?? bytes
    return this.#shift(excess)
  }

  #shift(count: number): readonly WaitingRecord[] {
    const gone = this.#records.splice(0, count)
    this.#bytes -= bytesOf(gone)
    return gone
  }
}

function bytesOf(waiting: readonly WaitingRecord[]): number {
  return waiting.reduce((sum, { record }) => sum + record.value.length, 0)
}
